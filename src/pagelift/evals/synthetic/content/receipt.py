"""What receipts say: a shop, lines that add up, how it was paid."""

from __future__ import annotations

from dataclasses import dataclass

from pagelift.evals.synthetic.issuers import Party, company, person, product
from pagelift.evals.synthetic.layouts.tables import Row
from pagelift.evals.synthetic.locales import filled
from pagelift.evals.synthetic.scene import Printed, Scene

_PAYMENTS = (("cash", "pay_cash"), ("card", "pay_card"), ("card", "pay_card"), ("transfer", "pay_transfer"), ("mobile", "pay_mobile"))


@dataclass(slots=True)
class Receipt:
    """facts: number, date, cashier and the like. totals and payment: concept and value, in printed order."""

    shop: Party
    contact: dict[str, Printed]
    facts: dict[str, Printed]
    rows: list[Row]
    totals: list[tuple[str, str, Printed]]
    payment: list[tuple[str, Printed]]


def receipt(scene: Scene) -> Receipt:
    """Draw a receipt. Prices include tax, but in the United States tax is added to them."""
    rng = scene.rng
    rows, amount, pieces = [], 0, 0
    for _ in range(rng.choice((1, 2, 3, 3, 4, 5, 6, 8, 12))):
        count = rng.choice((1, 1, 1, 2, 3, 6))
        food = scene.chance(0.75)
        price = rng.randint(45, 9_00) if food else rng.randint(3_00, 95_00)
        name = scene.pick("food") if food else product(scene)
        cells = {
            "item": scene.word(name),
            "quantity": scene.number(count),
            "unit_price": scene.cents(price),
            "amount": scene.cents(count * price),
        }
        rows.append(Row(cells))
        amount += count * price
        pieces += count
    totals, total = _totals(scene, amount)
    if scene.chance(0.3):
        totals.insert(0, ("item_count", "", scene.number(pieces)))
    facts = {"receipt_number": scene.code("R B"), "receipt_date": scene.date(0)}
    optional = {
        "receipt_time": (0.7, scene.word(f"{rng.randint(8, 20):02d}:{rng.randint(0, 59):02d}")),
        "cashier": (0.5, scene.word(scene.pick("first")) if scene.chance(0.5) else person(scene).name),
        "terminal": (0.4, scene.word(str(rng.randint(1, 12)))),
    }
    facts |= {concept: value for concept, (probability, value) in optional.items() if scene.chance(probability)}
    contact = {"phone": scene.phone(), "vat_id": scene.word(filled(scene.locale.vat, rng))}
    contact = {concept: value for concept, value in contact.items() if scene.chance(0.5)}
    return Receipt(company(scene), contact, facts, rows, totals, _payment(scene, total))


def _totals(scene: Scene, amount: int) -> tuple[list[tuple[str, str, Printed]], int]:
    rate = scene.locale.taxes[0]
    thousandths = round(rate * 1000)
    rate_text = f" {scene.number(rate, 0 if rate == int(rate) else 2).text}%" if scene.chance(0.6) else ""
    if scene.locale.code == "en-US":
        tax = (amount * thousandths + 50_000) // 100_000
        lines = [("subtotal", "", scene.cents(amount)), ("tax", rate_text, scene.cents(tax))]
        return [*lines, ("total", "", scene.cents(amount + tax, True))], amount + tax
    net = (amount * 100_000 + (100_000 + thousandths) // 2) // (100_000 + thousandths)
    lines = [("total", "", scene.cents(amount, True))]
    if scene.chance(0.6):
        lines.append(("tax", rate_text, scene.cents(amount - net)))
        if scene.chance(0.5):
            lines.insert(1, ("subtotal", "", scene.cents(net)))
    return lines, amount


def _payment(scene: Scene, total: int) -> list[tuple[str, Printed]]:
    kind, wording = scene.rng.choice(_PAYMENTS)
    lines = []
    if scene.chance(0.7):
        lines.append(("payment_method", Printed(kind, (scene.label(wording),))))
    if kind == "cash" and scene.chance(0.8):
        step = scene.rng.choice((5_00, 10_00, 20_00, 50_00))
        given = -(-total // step) * step
        lines += [("cash", scene.cents(given)), ("change", scene.cents(given - total))]
    elif kind == "card" and scene.chance(0.5):
        lines.append(("card_number", scene.word("**** " + filled("####", scene.rng))))
    return lines
