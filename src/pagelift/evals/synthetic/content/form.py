"""What forms say: fields that are filled in or left empty, boxes that are ticked or not."""

from __future__ import annotations

from dataclasses import dataclass

from pagelift.evals.synthetic.issuers import Party, city, company, email, last_name, person
from pagelift.evals.synthetic.scene import Printed, Scene
from pagelift.evals.synthetic.schemas import ENUMS


@dataclass(slots=True)
class Form:
    """sections: fields by concept, None where left empty. status: the ticked marital status, "" if none, None if not asked.

    ticks: concept and whether it is ticked. languages: None if not asked for on the form.
    """

    issuer: Party
    sections: list[dict[str, Printed | None]]
    status: str | None
    ticks: dict[str, bool]
    languages: list[str] | None


def form(scene: Scene) -> Form:
    """Draw a filled form."""
    rng = scene.rng
    applicant = person(scene)
    names = (
        {"full_name": applicant.name}
        if scene.chance(0.5)
        else {"last_name": scene.word(last_name(scene)), "first_name": scene.word(scene.pick("first"))}
    )
    home = Printed(applicant.address.data, (", ".join(applicant.address.lines),))
    about: dict[str, Printed | None] = {
        **names,
        "birth_date": scene.date(-rng.randint(7_000, 27_000)),
        "birth_place": scene.word(city(scene)),
        "nationality": scene.word(scene.pick("nation")),
        "address": home,
        "person_phone": scene.phone(),
        "person_email": email(scene, applicant),
    }
    work: dict[str, Printed | None] = {
        "occupation": scene.word(scene.pick("job")),
        "employer": company(scene).name,
        "income": scene.cents(rng.randint(900, 9_500) * 100, True),
    }
    other: dict[str, Printed | None] = {
        "policy_number": scene.code("PN V"),
        "member_number": scene.code("M"),
        "requested": scene.cents(rng.randint(5, 400) * 100_00, True),
        "emergency": person(scene).name,
    }
    status = None
    if scene.chance(0.6):
        status = rng.choice((*ENUMS["marital_status"], ""))
    ticks = {name: scene.chance(0.5) for name in ("newsletter", "terms_accepted") if scene.chance(0.6)}
    languages = rng.sample(scene.words.pools["language"], min(2, rng.choice((0, 1, 2)))) if scene.chance(0.4) else None
    sections = [_filled(scene, about, 0.85, keep=2), _filled(scene, work, 0.6, keep=0), _filled(scene, other, 0.5, keep=0)]
    return Form(company(scene), [section for section in sections if section], status, ticks, languages)


def _filled(scene: Scene, fields: dict[str, Printed | None], share: float, keep: int) -> dict[str, Printed | None]:
    """A part of the fields, one in six of them left empty; the first `keep` are always there and filled in."""
    chosen: dict[str, Printed | None] = {}
    for index, (concept, value) in enumerate(fields.items()):
        if index < keep:
            chosen[concept] = value
        elif scene.chance(share):
            chosen[concept] = None if scene.chance(0.17) else value
    return chosen
