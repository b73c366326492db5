"""What letters say: who writes to whom about a contract, and the facts of its change."""

from __future__ import annotations

from dataclasses import dataclass

from pagelift.evals.synthetic.issuers import Party, company, person
from pagelift.evals.synthetic.scene import Printed, Scene


@dataclass(slots=True)
class Letter:
    """facts: about the contract. references: of sender and recipient, and the date of the letter."""

    sender: Party
    recipient: Party
    references: dict[str, Printed]
    subject: Printed
    facts: dict[str, Printed]
    contact: dict[str, Printed]
    enclosures: list[str]


def letter(scene: Scene) -> Letter:
    """Draw a letter."""
    rng = scene.rng
    old = rng.randint(4_90, 240_00)
    facts = {
        "contract_number": scene.code("V C K"),
        "valid_from": scene.date(rng.randint(20, 120)),
        "new_price": scene.cents(old + rng.randint(50, 30_00), True),
    }
    optional = {
        "old_price": (0.55, scene.cents(old, True)),
        "notice_date": (0.5, scene.date(rng.randint(10, 19))),
        "term_months": (0.45, scene.number(rng.choice((6, 12, 18, 24, 36)))),
    }
    facts |= {concept: value for concept, (probability, value) in optional.items() if scene.chance(probability)}
    references = {"letter_date": scene.date(0)}
    if scene.chance(0.6):
        references["reference"] = scene.code("R AZ")
    if scene.chance(0.3):
        references["your_reference"] = scene.code()
    enclosures = rng.sample(scene.words.pools["enclosure"], 2)[: rng.choice((1, 2))] if scene.chance(0.4) else []
    contact = {"phone": scene.phone()} if scene.chance(0.4) else {}
    return Letter(company(scene), person(scene), references, scene.word(scene.label("s_subject")), facts, contact, enclosures)
