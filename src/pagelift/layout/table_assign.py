"""Which column answers which property: by heading, kind of cells, arithmetic and position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from pagelift.evidence import parse_number
from pagelift.layout.query import Query
from pagelift.layout.table_columns import Cells, Column, amount_with_unit
from pagelift.layout.table_headers import FAMILIES, cell_match
from pagelift.layout.table_shared import Answers, is_amount, is_price, is_quantity, share_cells
from pagelift.layout.values import Locale

_DEBIT = re.compile(
    r"\b(soll|d[ée]bit|withdraw|paid out|money out|out\b|belastung|ausg[aä]ng|uscite|addebit|cargo|debe\b|dare\b|retiro|d[ée]pense)",
    re.I,
)
_CREDIT = re.compile(
    r"\b(haben|cr[ée]dit|deposit|paid in|money in|in\b|gutschrift|eing[aä]ng|entrate|accredit|abono|haber\b|avere\b|bij\b|recette)", re.I
)
HEADED = re.compile(r"\b(heading|section|group|category|panel|under which|chapter|subtitle)\b", re.I)
"""Words by which a schema says that a property is printed as a heading over rows."""
_TO_DATE = re.compile(r"(?i)\b(ytd|year to date|to date|cumul|prior|previous|vorjahr|jahr|anterior|précédent)")


def assign_queries(
    queries: Sequence[Query], columns: Sequence[Column], body: Sequence[Cells], names: frozenset[str], locale: Locale
) -> Answers:
    """The greatest sum of heading, kind, arithmetic and position, one column per property; then columns with two meanings."""
    bonus = _arithmetic(queries, columns, body, locale)
    counts = [_is_counter(ci, body) for ci in range(len(columns))]
    pairs = []
    for qi, query in enumerate(queries):
        for ci, column in enumerate(columns):
            label = cell_match(query, column.heading, names) if column.heading else 0.0
            if "unit" in query.label and query.kind == "text" and column.is_numeric:
                continue
            if counts[ci] and query.label & {"position", "rank"}:
                label = max(label, 0.8) + 0.3
            elif counts[ci] and query.kind == "id":
                label -= 0.8
            evidence = label + bonus.get((qi, ci), 0.0)
            score = 2.0 * label + _fit(query, column) + bonus.get((qi, ci), 0.0) + _position(query, ci, columns)
            if evidence >= 0.3 and score > 0.9:
                pairs.append((score, qi, ci))
    answers = Answers()
    chosen = answers.chosen
    for _, qi, ci in sorted(pairs, key=lambda p: (-p[0], p[1], p[2])):
        if qi not in chosen and ci not in chosen.values():
            chosen[qi] = ci
    _pair_debit_credit(queries, columns, answers)
    _fall_back(queries, columns, chosen)
    share_cells(queries, columns, body, answers)
    return answers


def _is_counter(number: int, body: Sequence[Cells]) -> bool:
    """Whether a column numbers the rows: 1, 2, 3 or 10, 20, 30."""
    values = [int(t.rstrip(".")) for c in body if re.fullmatch(r"0{0,5}[1-9]\d{0,3}\.?", t := c.text(number))]
    return len(values) > 1 and values[0] in (1, 10) and all(b - a == values[0] for a, b in pairwise(values))


def _pair_debit_credit(queries: Sequence[Query], columns: Sequence[Column], answers: Answers) -> None:
    """One signed amount is printed in two columns, money out and money in."""
    amounts = [i for i, q in enumerate(queries) if q.kind == "number" and q.label & {"amount", "value"}]
    if len(amounts) != 1:
        return
    taken = {ci for qi, ci in answers.chosen.items() if qi != amounts[0]}
    free = [i for i, c in enumerate(columns) if c.heading and i not in taken and c.kinds["text"] <= 0.5 * c.kinds.total()]
    texts = {i: heading.text for i in free if (heading := columns[i].heading)}
    debit = [i for i in free if _DEBIT.search(texts[i]) and not _CREDIT.search(texts[i])]
    credit = [i for i in free if _CREDIT.search(texts[i]) and not _DEBIT.search(texts[i])]
    if len(debit) == 1 and len(credit) == 1 and answers.chosen.get(amounts[0]) in (None, debit[0], credit[0]):
        answers.chosen[amounts[0]] = debit[0]
        answers.credit[amounts[0]] = credit[0]


def _fit(query: Query, column: Column) -> float:
    """Whether the column's cells look like the property, in [-1.5, 1]."""
    total = column.kinds.total()
    if not total:
        return 0.0
    kinds = column.kinds
    numbers = 0.3 if query.label & (FAMILIES[0] | FAMILIES[2]) else 0.8
    words = kinds["text"] + 0.8 * (kinds["code"] + kinds["clock"]) + numbers * kinds["number"]
    fitting = {
        "number": kinds["number"] + 0.1 * kinds["code"],
        "percent": kinds["percent"] + 0.7 * kinds["number"],
        "date": kinds["date"],
        "datetime": kinds["date"],
        "time": kinds["clock"] + 0.3 * kinds["number"],
        "id": kinds["code"] + kinds["number"] + 0.5 * kinds["text"],
        "name": kinds["text"],
        "address": kinds["text"],
        "enum": total,
    }
    share = fitting.get(query.kind, words) / total
    if query.kind in ("number", "percent", "date", "datetime"):
        return 1.0 if share > 0.6 else 2.5 * share - 1.5 if share < 0.6 else share
    return 1.6 * share - 0.6


def _position(query: Query, number: int, columns: Sequence[Column]) -> float:
    """Small priors: a line total stands far right, a rank or position far left, an item's name before the numbers."""
    place = number / max(1, len(columns) - 1)
    if query.kind == "number" and query.label & {"amount", "total", "net", "gross"}:
        return 0.25 * place
    if query.label & {"rank", "position"} or query.label & FAMILIES[0]:
        return 0.1 * (1 - place)
    return 0.0


def _arithmetic(queries: Sequence[Query], columns: Sequence[Column], body: Sequence[Cells], locale: Locale) -> dict[tuple[int, int], float]:
    """Evidence that three columns are quantity, price and amount: their product holds in the rows."""
    quantity = next((i for i, q in enumerate(queries) if is_quantity(q)), None)
    price = next((i for i, q in enumerate(queries) if is_price(q)), None)
    amount = next((i for i, q in enumerate(queries) if is_amount(q)), None)
    if amount is None or (quantity is None and price is None):
        return {}
    numeric = [i for i, c in enumerate(columns) if c.kinds["number"] >= 0.4 * max(1, c.kinds.total())][-10:]
    table = [{i: v for i in numeric if (v := cell_number(row.text(i), locale)) is not None} for row in body]
    table = [row for row in table if len(row) >= 3]
    best: tuple[float, tuple[int, int, int]] | None = None
    for k in numeric:
        for i in numeric:
            for j in numeric:
                if len({i, j, k}) < 3 or k < max(i, j) - 1:
                    continue
                rows = [r for r in table if i in r and j in r and k in r]
                holds = sum(abs(abs(r[i] * r[j]) - abs(r[k])) <= max(0.011, 0.002 * abs(r[k])) for r in rows)
                plain = sum(r[i] == 1 or r[j] == 1 for r in rows)
                score = holds / max(1, len(rows)) if holds and holds >= 0.5 * len(rows) else 0.0
                score += (
                    0.05 * (k / len(columns))
                    - 0.3 * (plain == len(rows))
                    + (0.1 if sum(r[i] % 1 == 0 for r in rows) > sum(r[j] % 1 == 0 for r in rows) else 0.0)
                )
                if score > 0.5 and (best is None or score > best[0]):
                    best = score, (i, j, k)
    if best is None:
        return {}
    places = zip((quantity, price, amount), best[1], strict=True)
    return {(q, c): 0.7 for q, c in places if q is not None}


def cell_number(text: str, locale: Locale) -> float | None:
    number = parse_number(text, locale.mark)
    if number is None:
        body = amount_with_unit(text)
        number = parse_number(body, locale.mark) if body else None
    return None if number is None or number.percent else float(number.value)


def _fall_back(queries: Sequence[Query], columns: Sequence[Column], chosen: dict[int, int]) -> None:
    """Properties without a matching heading: the widest text column is the item's name, the last numeric one its amount."""
    free = [i for i in range(len(columns)) if i not in chosen.values()]
    for qi, query in enumerate(queries):
        if qi in chosen:
            continue
        options: list[int] = []
        if query.label & FAMILIES[0] or (query.kind in ("name", "text") and query.label & FAMILIES[2]):
            if not any(other in chosen and queries[other].label & FAMILIES[0] for other in range(len(queries))):
                options = sorted((i for i in free if _fit(query, columns[i]) > 0.3), key=lambda i: columns[i].x1 - columns[i].x0)
        elif is_amount(query) and not any(is_amount(queries[other]) for other in chosen):
            last = max(chosen.values(), default=0)
            numeric = [i for i in free if columns[i].kinds["number"] > 0.6 * columns[i].kinds.total() > 0 and i >= last]
            options = [i for i in numeric if not (heading := columns[i].heading) or not _TO_DATE.search(heading.text)]
        elif query.kind in ("date", "datetime"):
            options = [i for i in free if _fit(query, columns[i]) > 0.5]
            options = options if len(options) == 1 else []
        if options:
            chosen[qi] = options[-1]
            free.remove(options[-1])
    open_ = [i for i, q in enumerate(queries) if i not in chosen and q.kind in ("text", "name") and not _is_elsewhere(q)]
    texts = [i for i in free if columns[i].kinds["text"] > 0.7 * columns[i].kinds.total() > 0]
    required = [i for i in open_ if queries[i].node.required or not queries[i].node.nullable] or open_
    if len(required) == 1 and len(texts) == 1:
        chosen[required[0]] = texts[0]


def _is_elsewhere(query: Query) -> bool:
    """Whether a text property is rather found in a heading over rows or inside another cell than in a column of its own."""
    return bool(
        query.label & {"unit", "start", "end", "time"} or "flag" in query.words or HEADED.search(f"{query.words} {query.description}")
    )
