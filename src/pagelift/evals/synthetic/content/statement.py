"""What bank statements say: an account, a period, bookings that lead from one balance to the other."""

from __future__ import annotations

from dataclasses import dataclass

from pagelift.evals.synthetic.issuers import Party, company, last_name, person
from pagelift.evals.synthetic.layouts.tables import Row
from pagelift.evals.synthetic.locales import filled
from pagelift.evals.synthetic.scene import Printed, Scene


@dataclass(slots=True)
class Statement:
    """account: number, IBAN, statement number and date. summary: balances and sums. running: balance after each row, in cents."""

    bank: Party
    holder: Party
    account: dict[str, Printed]
    period: tuple[Printed, Printed]
    summary: dict[str, Printed]
    rows: list[Row]
    running: list[int]


def statement(scene: Scene) -> Statement:
    """Draw a statement. Rows have the amount signed and as debit or credit; the layout prints one or the other."""
    rng = scene.rng
    days = rng.choice((27, 28, 29, 30, 6, 89))
    count = rng.randint(30, 55) if scene.chance(0.15) else rng.randint(2, 14)
    opening = rng.randint(-200_00, 9_000_00)
    balance, credits, debits = opening, 0, 0
    rows, running = [], []
    for day in sorted(rng.randint(-days, 0) for _ in range(count)):
        amount = rng.randint(5_00, 400_00) if rng.random() < 0.8 else rng.randint(400_00, 4_000_00)
        incoming = rng.random() < 0.3
        balance += amount if incoming else -amount
        credits, debits = credits + amount * incoming, debits + amount * (not incoming)
        cells = {
            "booking_date": scene.date(day),
            "value_date": scene.date(day + rng.choice((0, 0, 1, 2))),
            "booking_text": scene.word(_text(scene)),
            "booking_amount": scene.cents(amount if incoming else -amount),
            "credit" if incoming else "debit": scene.cents(amount),
            "booking_balance": scene.cents(balance),
        }
        rows.append(Row(cells, filled("Ref. ########", rng) if scene.chance(0.1) else ""))
        running.append(balance)
    summary = {
        "opening": scene.cents(opening, True),
        "credits": scene.cents(credits, True),
        "debits": scene.cents(debits, True),
        "closing": scene.cents(balance, True),
    }
    if scene.chance(0.4):
        del summary["credits"], summary["debits"]
    account = {"account_number": scene.word(filled(rng.choice(("########", "### ### ###", "##########")), rng))}
    iban = scene.iban()
    if iban is not None and scene.chance(0.7):
        account = {"account_iban": iban} | (account if scene.chance(0.3) else {})
    if scene.chance(0.6):
        account["statement_number"] = scene.word(rng.choice((str(rng.randint(1, 60)), filled("###/20##", rng))))
    if scene.chance(0.6):
        account["statement_date"] = scene.date(rng.randint(1, 4))
    return Statement(company(scene, bank=True), person(scene), account, (scene.date(-days), scene.date(0)), summary, rows, running)


def _text(scene: Scene) -> str:
    text = scene.pick("booking")
    if scene.chance(0.3):
        text += f" {last_name(scene)}"
    if scene.chance(0.25):
        text += " " + filled(scene.rng.choice(("######", "@@####", "##/20##")), scene.rng)
    return text
