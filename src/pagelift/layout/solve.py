"""One value per field for all fields together.

Each query has a short list of scored candidates and the option to stay empty. The best assignment maximises the
scores plus what fields say about each other: net + tax = gross, first day before last day, an address under its name,
no span used twice. It is found by exact search over the sum relation and by changing one field at a time for the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pagelift.layout import lexicon
from pagelift.layout.candidates import Candidate
from pagelift.layout.query import Query
from pagelift.layout.scoring import Scored

SHORT_LIST = 30
_SAME_SPAN = -2.0
_IS_LABEL = -1.0
_BESIDE = ("inline", "left", "row")
_NEAR_NAME = 0.6
_DATE_PAIR = 0.8
_SUM_BONUS = 1.1


@dataclass(slots=True, eq=False)
class Choice:
    """options: best first. threshold: score below which the query stays empty. chosen: index or None."""

    query: Query
    options: list[Scored]
    threshold: float
    chosen: int | None = None

    @property
    def pick(self) -> Scored | None:
        return None if self.chosen is None else self.options[self.chosen]

    @property
    def margin(self) -> float:
        """Distance of the chosen score to the best option of another value, at most 3."""
        if self.pick is None:
            return 0.0
        value = self.pick.candidate.text
        others = [o.score for o in self.options if o.candidate.text != value]
        return min(3.0, self.pick.score - max(others, default=self.pick.score - 3.0))


def solve(choices: Sequence[Choice]) -> None:
    """Set `chosen` of every choice. Deterministic: ties go to the earlier option and the earlier field."""
    for choice in choices:
        _prefer_rounded(choice)
        choice.options = sorted(choice.options, key=lambda o: -o.score)[:SHORT_LIST]
        choice.chosen = None
    related = {id(c): [o for o in choices if o is not c] for c in choices}
    for choice in sorted(choices, key=lambda c: -_regret(c)):
        choice.chosen = _best_option(choice, related[id(choice)])
    _solve_periods(choices)
    fixed = _solve_sums(choices)
    for _ in range(4):
        changed = False
        for choice in choices:
            if choice in fixed or not choice.options:
                continue
            before = choice.chosen
            choice.chosen = _best_option(choice, related[id(choice)])
            changed |= choice.chosen != before
        if not changed:
            break
    _due_is_total(choices)


def _due_is_total(choices: Sequence[Choice]) -> None:
    """An amount due that is not printed apart is the total, where nothing was paid before."""
    totals = [c.pick for c in choices if sum_role(c.query) == "gross" and c.pick is not None and c.pick.label > 0.3]
    for choice in choices:
        query = choice.query
        due = query.kind == "number" and "due" in query.label and query.label <= {"due", "amount", "balance", "total", "paid"}
        if (
            due
            and choice.pick is None
            and totals
            and not any("paid" in lexicon.bag(t) for o in choice.options for t, _, r in o.candidate.labels if r in _BESIDE)
        ):
            choice.options = [*choice.options, totals[0]]
            choice.chosen = len(choice.options) - 1


def _prefer_rounded(choice: Choice) -> None:
    """Where the schema asks for the amount after rounding: a printed sum of an amount and a rounding adjustment counts more."""
    if "rounding" not in choice.query.description.lower() or not choice.options:
        return
    values = [(o, o.candidate.number.value) for o in choice.options if o.candidate.number is not None]
    adjustments = {
        v for o, v in values if abs(v) <= 1 and any("rounding" in lexicon.bag(t) for t, _, r in o.candidate.labels if r in _BESIDE)
    }
    best, base = max(values, key=lambda pair: pair[0].score)
    for option, value in values:
        if (
            _is_round(value)
            and not _is_round(base)
            and any(adjustment and value in (base + adjustment, base - adjustment) for adjustment in adjustments)
        ):
            option.score = max(option.score, best.score + 0.1)


def _is_round(value: Decimal) -> bool:
    """Whether an amount can be paid in cash: a multiple of 0.05."""
    return abs(value) < 1_000_000_000 and value * 20 == (value * 20).to_integral_value()


def _regret(choice: Choice) -> float:
    """What the choice loses when it has to take its second best; those with most to lose choose first."""
    scores = [o.score for o in choice.options]
    return scores[0] - max(scores[1], choice.threshold) if len(scores) > 1 else scores[0] - choice.threshold if scores else -1.0


def _best_option(choice: Choice, others: list[Choice]) -> int | None:
    best, best_score = None, choice.threshold
    for i, option in enumerate(choice.options):
        total = option.score + sum(_together(choice.query, option, o.query, o.pick) for o in others if o.pick is not None)
        if total > best_score + 1e-9:
            best, best_score = i, total
    return best


def _together(query: Query, option: Scored, other: Query, pick: Scored | None) -> float:
    """What two chosen values say about each other."""
    assert pick is not None
    here, there = option.candidate, pick.candidate
    score = 0.0
    one_range = here.range_part and there.range_part and here.range_part != there.range_part
    if (
        not one_range
        and here.segment is there.segment
        and here.start < there.end
        and there.start < here.end
        and query.kind not in ("percent",)
    ):
        score += _SAME_SPAN if not (here.lines or there.lines) else _SAME_SPAN / 2
    if pick.label > 0.7 and here.segment.text == pick.named_by:
        score += _IS_LABEL  # what names another field's value is no value
    if query.path[:-1] != other.path[:-1]:
        return score
    if query.kind in ("date", "datetime") and other.kind == query.kind and {query.bound, other.bound} == {"first", "last"}:
        first, last = (here, there) if query.bound == "first" else (there, here)
        if first.iso and last.iso and first.iso > last.iso:
            return score - 1.5
        score += _DATE_PAIR * _adjacent(first, last) + 0.3 * (first.range_part == 1 and last.range_part == 2)
    if {query.kind, other.kind} == {"address", "name"} and (query.role == other.role or len(query.path) > 1):
        name, address = (here, there) if query.kind == "name" else (there, here)
        gap = address.segment.box.top - name.segment.box.bottom
        near = here.page is there.page and -0.5 * here.page.unit < gap < 2.5 * here.page.unit
        score += _NEAR_NAME * (near and abs(address.segment.box.x0 - name.segment.box.x0) < 0.25 * here.page.width)
    return score


def _adjacent(first: Candidate, last: Candidate) -> bool:
    """Whether two candidates stand side by side on a line or one under the other."""
    if first.page is not last.page:
        return False
    if first.segment.line == last.segment.line:
        return bool(last.box.x0 > first.box.x0)
    gap = last.box.top - first.box.top
    return bool(abs(first.box.x0 - last.box.x0) < 3 * first.page.unit and 0 < gap < 4 * first.page.unit)


def sum_role(query: Query) -> str | None:
    """The part a query plays in net + tax = gross, or None."""
    if query.kind != "number" or query.many:
        return None
    label = query.label
    if label & {"tip", "shipping_cost", "discount", "rounding", "paid", "balance", "unit", "price", "salary"} or label & {"due"}:
        return None
    if "tax" in label and not label & {"net", "gross"} and not label & {"number", "identification", "rate"}:
        return "tax"
    if "net" in label:
        return "net"
    return "gross" if label & {"gross", "total"} else None


def _solve_periods(choices: Sequence[Choice]) -> None:
    """First and last day of one period are chosen together."""
    dates = [c for c in choices if c.query.kind in ("date", "datetime") and c.options]
    for start, end in itertools.product(dates, dates):
        if (start.query.bound, end.query.bound) != ("first", "last") or start.query.path[:-1] != end.query.path[:-1]:
            continue
        pairs = itertools.product(range(len(start.options)), range(len(end.options)))

        def together(pair: tuple[int, int], start: Choice = start, end: Choice = end) -> float:
            first, last = start.options[pair[0]], end.options[pair[1]]
            return first.score + last.score + _together(start.query, first, end.query, last)

        best = max(pairs, key=together)
        if together(best) >= start.threshold + end.threshold:
            start.chosen, end.chosen = best


def _solve_sums(choices: Sequence[Choice]) -> set[Choice]:
    """Where net, tax and gross are all asked for: the best triple that adds up, if it costs little against the single bests."""
    roles: dict[str, Choice] = {}
    for choice in choices:
        role = sum_role(choice.query)
        if role and choice.options:
            roles.setdefault(role, choice)
    if set(roles) != {"net", "tax", "gross"}:
        return set()
    net, tax, gross = (_distinct(roles[r]) for r in ("net", "tax", "gross"))
    gross_at = {round(v, 2): i for v, i in reversed(gross)}
    best: tuple[float, tuple[int, int | None, int]] | None = None
    for (n, i), (t, j) in itertools.product(net, [*tax, (0.0, None)]):
        k = gross_at.get(round(n + t, 2))
        if k is None or not (0 <= t <= 0.3 * n if n > 0 else t <= 0):
            continue
        tax_score = roles["tax"].options[j].score if j is not None else roles["tax"].options[0].score - 1.0
        total = roles["net"].options[i].score + tax_score + roles["gross"].options[k].score - (0.3 if abs(t) < 0.005 else 0)
        if best is None or total > best[0]:
            best = (total, (i, j, k))
    single = sum(roles[r].options[0].score for r in roles)
    if best is None or best[0] < single - 2 * _SUM_BONUS or best[1][1] is None:
        return set()
    for role, index in zip(("net", "tax", "gross"), best[1], strict=True):
        roles[role].chosen = index
    return set(roles.values())


def _distinct(choice: Choice) -> list[tuple[float, int]]:
    """Distinct values of the short list with the index of their best option."""
    seen: dict[float, int] = {}
    for i, option in enumerate(choice.options):
        number = option.candidate.number
        if number is not None:
            seen.setdefault(round(float(number.value), 2), i)
    return list(seen.items())
