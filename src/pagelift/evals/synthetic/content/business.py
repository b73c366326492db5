"""What invoices and purchase orders say: parties, numbers and dates, lines that add up, totals, bank details."""

from __future__ import annotations

from dataclasses import dataclass

from pagelift.evals.synthetic.issuers import Party, city, company, email, person, product
from pagelift.evals.synthetic.layouts.tables import Row
from pagelift.evals.synthetic.locales import filled
from pagelift.evals.synthetic.scene import Printed, Scene

INCOTERMS = ("EXW", "FCA", "DAP", "DDP", "CIF", "FOB")
CARRIERS = ("Blue Arrow", "Cargo One", "Parcel Express", "Eurohaul")


@dataclass(slots=True)
class Business:
    """An invoice or order. facts: dates, numbers and the like, by concept. totals: concept, rate behind the label, amount.

    issuer: the seller of an invoice, the buyer of an order; partner: the other one. ship_to: None if it is not stated.
    contact: phone, email and VAT number of the issuer. payment: bank details. columns: of the table. running: sum of the
    lines up to each row, in cents.
    """

    issuer: Party
    partner: Party
    ship_to: Party | None
    number: str
    facts: dict[str, Printed]
    contact: dict[str, Printed]
    payment: dict[str, Printed]
    columns: list[str]
    rows: list[Row]
    totals: list[tuple[str, str, Printed]]
    running: list[int]


def business(scene: Scene, kind: str) -> Business:
    """Draw an invoice or an order."""
    order = kind == "order"
    issuer, partner = company(scene), company(scene) if order or scene.chance(0.75) else person(scene)
    columns, rows, lines = _lines(scene)
    facts = _order_facts(scene) if order else _invoice_facts(scene)
    totals = _totals(scene, lines, order)
    contact = {"phone": scene.phone(), "email": email(scene, issuer), "vat_id": scene.word(filled(scene.locale.vat, scene.rng))}
    for name in list(contact):
        if scene.chance(0.35):
            del contact[name]
    running = [sum(amount for amount, _ in lines[: end + 1]) for end in range(len(lines))]
    ship_to = Party(company(scene).name, person(scene).address, "") if scene.chance(0.6 if order else 0.25) else None
    payment = {} if order else _payment(scene)
    return Business(issuer, partner, ship_to, f"{kind}_number", facts, contact, payment, columns, rows, totals, running)


def _invoice_facts(scene: Scene) -> dict[str, Printed]:
    chance = scene.chance
    facts = {"invoice_number": scene.code("INV RE F FA R"), "invoice_date": scene.date(0)}
    days = scene.rng.choice((10, 14, 21, 30, 45))
    optional = {
        "customer_number": (0.5, scene.code("C K D")),
        "order_number": (0.4, scene.code("PO B")),
        "order_date": (0.2, scene.date(-scene.rng.randint(5, 40))),
        "delivery_date": (0.35, scene.date(-scene.rng.randint(0, 12))),
        "delivery_note": (0.2, scene.code("DN L")),
        "project": (0.15, scene.code("P")),
        "contact": (0.25, person(scene).name),
        "print_date": (0.1, scene.date(scene.rng.randint(1, 5))),
        "due_date": (0.6, scene.date(days)),
        "payment_terms": (0.3, scene.word(scene.pick("terms"))),
    }
    facts |= {concept: value for concept, (probability, value) in optional.items() if chance(probability)}
    return _shuffled(scene, facts)


def _order_facts(scene: Scene) -> dict[str, Printed]:
    facts = {"order_number": scene.code("PO B O"), "order_date": scene.date(0)}
    optional = {
        "date_needed": (0.65, scene.date(scene.rng.randint(4, 60))),
        "customer_number": (0.3, scene.code("C K D")),
        "contact": (0.5, person(scene).name),
        "payment_terms": (0.45, scene.word(scene.pick("terms"))),
        "incoterm": (0.4, scene.word(f"{scene.rng.choice(INCOTERMS)} {city(scene)}")),
        "ship_via": (0.35, scene.word(scene.rng.choice(CARRIERS))),
        "project": (0.25, scene.code("P")),
        "print_date": (0.15, scene.date(scene.rng.randint(0, 5))),
    }
    facts |= {concept: value for concept, (probability, value) in optional.items() if scene.chance(probability)}
    return _shuffled(scene, facts)


def _shuffled(scene: Scene, facts: dict[str, Printed]) -> dict[str, Printed]:
    """The first fact or two where they are, the rest in any order."""
    names = list(facts)
    rest = names[2:]
    scene.rng.shuffle(rest)
    return {name: facts[name] for name in names[:2] + rest}


def _payment(scene: Scene) -> dict[str, Printed]:
    account = scene.iban()
    payment = {"bank": scene.word(f"{city(scene)} Bank")} if scene.chance(0.6) else {}
    if account is not None and scene.chance(0.75):
        payment["iban"] = account
        if scene.chance(0.6):
            payment["bic"] = scene.bic()
    return payment


def _lines(scene: Scene) -> tuple[list[str], list[Row], list[tuple[int, float]]]:
    """Columns, rows, and of every row its amount in cents and tax rate in percent."""
    rng = scene.rng
    columns = ["item", "quantity", "unit_price", "amount"]
    if scene.chance(0.35):
        columns.insert(2, "unit")
    with_discount, with_rate = scene.chance(0.18), scene.chance(0.25)
    if with_discount:
        columns.insert(-1, "line_discount")
    if with_rate:
        columns.insert(-1, "tax_rate")
    if scene.chance(0.35):
        columns.insert(0, "sku")
    if scene.chance(0.4):
        columns.insert(0, "pos")
    if scene.chance(0.2):  # the quantity stands first
        columns.remove("quantity")
        columns.insert(0, "quantity")
    count = rng.randint(28, 60) if scene.chance(0.1) else rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 8, 11))
    services, details = scene.chance(0.3), scene.chance(0.35)
    main_rate = scene.locale.taxes[0]
    rows, lines = [], []
    for index in range(count):
        tenths = rng.randint(2, 40) * 5 if services else rng.choice((1, 1, 2, 3, 4, 5, 6, 10, 12, 25, 100)) * 10
        price = rng.randint(150, 99_99) if rng.random() < 0.75 or tenths > 100 else rng.randint(100_00, 2_500_00)
        percent = rng.choice((0, 0, 5, 10)) if with_discount else 0
        rate = rng.choice(scene.locale.taxes) if with_rate else main_rate
        amount = (tenths * price * (100 - percent) + 500) // 1000
        cells = {
            "pos": scene.number(index + 1),
            "sku": scene.word(filled("@@###" if index % 2 else "@@####", rng)),
            "item": scene.word(_item(scene, services)),
            "quantity": scene.number(tenths / 10, 1) if services else scene.number(tenths // 10),
            "unit": scene.word("h" if services else scene.pick("unitname")),
            "unit_price": scene.cents(price),
            "tax_rate": scene.number(rate, 0 if rate == int(rate) else 2),
            "amount": scene.cents(amount),
        }
        if percent:
            cells["line_discount"] = scene.number(percent)
        rows.append(Row({c: v for c, v in cells.items() if c in columns}, scene.pick("detail") if details and rng.random() < 0.7 else ""))
        lines.append((amount, rate))
    return columns, rows, lines


def _item(scene: Scene, services: bool) -> str:
    if services:
        return f"{scene.pick('service')} {city(scene)}" if scene.chance(0.4) else scene.pick("service")
    name = product(scene)
    if scene.chance(0.4):
        name += f", {scene.pick('adjective')}"
    if scene.chance(0.3):
        name += " " + filled(scene.rng.choice(("@##", "##x## cm", "#.#@")), scene.rng)
    if scene.chance(0.1):
        name += f", {scene.pick('detail')}"
    return name


def _totals(scene: Scene, lines: list[tuple[int, float]], order: bool) -> list[tuple[str, str, Printed]]:
    """Net, tax and gross, with discount, shipping and payments where there are any; everything adds up to the cent."""
    rng = scene.rng
    gross_sum = sum(amount for amount, _ in lines)
    percent = rng.choice((2, 3, 5, 10)) if scene.chance(0.15) else 0
    discount = (gross_sum * percent + 50) // 100
    shipping = rng.randint(3_90, 45_00) if scene.chance(0.2) else 0
    main = scene.locale.taxes[0]
    by_rate: dict[float, int] = {}
    for amount, rate in lines:
        by_rate[rate] = by_rate.get(rate, 0) + amount
    by_rate = {rate: base - (base * percent + 50) // 100 for rate, base in by_rate.items()}
    if shipping:
        by_rate[main] = by_rate.get(main, 0) + shipping
    net = gross_sum - discount + shipping
    tax = sum((base * round(rate * 1000) + 50_000) // 100_000 for rate, base in by_rate.items())
    totals: list[tuple[str, str, Printed]] = []
    if discount:
        shown = scene.cents(-discount) if scene.chance(0.6) else scene.cents(discount)
        totals.append(("discount", f" {percent}%", Printed(discount / 100, shown.lines)))
    if shipping:
        totals.append(("shipping", "", scene.cents(shipping)))
    rates = sorted(by_rate)
    rate_text = f" {scene.number(rates[0], 0 if rates[0] == int(rates[0]) else 2).text}%" if len(rates) == 1 and scene.chance(0.7) else ""
    totals += [("subtotal", "", scene.cents(net)), ("tax", rate_text, scene.cents(tax)), ("total", "", scene.cents(net + tax, True))]
    if not order and scene.chance(0.2):
        paid = (net + tax) // rng.choice((2, 3, 4))
        shown = scene.cents(-paid) if scene.chance(0.5) else scene.cents(paid)
        totals.append(("paid", "", Printed(paid / 100, shown.lines)))
        totals.append(("balance_due", "", scene.cents(net + tax - paid, True)))
    return totals
