"""The kinds of documents: how each is drawn, and what may be asked of it though it is not printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pagelift.core import ConfigError
from pagelift.evals.synthetic.content.business import business
from pagelift.evals.synthetic.content.form import form
from pagelift.evals.synthetic.content.letter import letter
from pagelift.evals.synthetic.content.receipt import receipt
from pagelift.evals.synthetic.content.statement import statement
from pagelift.evals.synthetic.layouts import business as business_layouts
from pagelift.evals.synthetic.layouts import forms, letters, receipts, statements
from pagelift.evals.synthetic.layouts.sheet import Sheet, new_sheet
from pagelift.evals.synthetic.scene import Scene
from pagelift.evals.synthetic.splits import Split

KindName = Literal["invoice", "order", "receipt", "statement", "form", "letter"]


class Family(Protocol):
    """What layout families of all kinds have."""

    @property
    def id(self) -> str: ...

    @property
    def split(self) -> Split: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """draw: lays a document out; returns the sheet and the name of the issuer. absent, absent_columns: see `schemas.Content`."""

    families: Sequence[Family]
    draw: Callable[[Scene, Family], tuple[Sheet, str]]
    absent: tuple[str, ...]
    absent_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _draw_business(kind: str) -> Callable[[Scene, Family], tuple[Sheet, str]]:
    def draw(scene: Scene, family: Family) -> tuple[Sheet, str]:
        document = business(scene, kind)
        sheet = new_sheet(scene)
        assert isinstance(family, business_layouts.Family)
        business_layouts.draw_business(sheet, document, family, kind)
        return sheet, document.issuer.name.text

    return draw


def _draw_receipt(scene: Scene, family: Family) -> tuple[Sheet, str]:
    document = receipt(scene)
    sheet = receipts.receipt_sheet(scene, document)
    assert isinstance(family, receipts.Family)
    receipts.draw_receipt(sheet, document, family)
    return sheet, document.shop.name.text


def _draw_statement(scene: Scene, family: Family) -> tuple[Sheet, str]:
    document = statement(scene)
    sheet = new_sheet(scene)
    assert isinstance(family, statements.Family)
    statements.draw_statement(sheet, document, family)
    return sheet, document.bank.name.text


def _draw_form(scene: Scene, family: Family) -> tuple[Sheet, str]:
    document = form(scene)
    sheet = new_sheet(scene)
    assert isinstance(family, forms.Family)
    forms.draw_form(sheet, document, family)
    return sheet, document.issuer.name.text


def _draw_letter(scene: Scene, family: Family) -> tuple[Sheet, str]:
    document = letter(scene)
    sheet = new_sheet(scene)
    assert isinstance(family, letters.Family)
    letters.draw_letter(sheet, document, family)
    return sheet, document.sender.name.text


_ITEM_COLUMNS = {"items": ("sku", "unit", "line_discount", "tax_rate")}
KINDS: dict[KindName, Kind] = {
    "invoice": Kind(
        business_layouts.FAMILIES,
        _draw_business("invoice"),
        ("due_date", "order_number", "order_date", "customer_number", "delivery_date", "delivery_note", "project", "contact", "vat_id",
         "phone", "email", "iban", "bic", "ship_to", "discount", "shipping", "paid", "payment_terms", "print_date"),
        _ITEM_COLUMNS,
    ),
    "order": Kind(
        business_layouts.FAMILIES,
        _draw_business("order"),
        ("date_needed", "customer_number", "project", "contact", "ship_to", "ship_address", "discount",
         "shipping", "payment_terms", "incoterm", "ship_via", "print_date"),
        _ITEM_COLUMNS,
    ),
    "receipt": Kind(
        receipts.FAMILIES,
        _draw_receipt,
        ("receipt_time", "cashier", "terminal", "vat_id", "phone", "cash", "change", "card_number", "item_count"),
    ),
    "statement": Kind(
        statements.FAMILIES,
        _draw_statement,
        ("account_number", "account_iban", "statement_number", "statement_date", "credits", "debits"),
        {"bookings": ("value_date", "booking_balance")},
    ),
    "form": Kind(
        forms.FAMILIES,
        _draw_form,
        ("birth_place", "address", "person_phone", "person_email", "nationality", "occupation", "employer", "income", "requested",
         "policy_number", "member_number", "sign_date", "marital_status", "emergency", "languages"),
    ),
    "letter": Kind(
        letters.FAMILIES, _draw_letter, ("reference", "your_reference", "old_price", "notice_date", "term_months", "phone", "enclosures")
    ),
}  # fmt: skip


def kind_named(name: str) -> KindName:
    """The kind of a name. Raises ConfigError."""
    for kind in KINDS:
        if kind == name:
            return kind
    raise ConfigError(f"{name!r} is no kind of document; known are {', '.join(KINDS)}")
