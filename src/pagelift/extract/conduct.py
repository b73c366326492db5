"""A plan carried out: every question asked, answers that were cut off continued, everything merged into one proposal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from pagelift.core import Budget, EngineError, Field, Json, Proposal
from pagelift.core.threads import side_by_side
from pagelift.evidence.align import align
from pagelift.extract.evidence import answered_fields
from pagelift.extract.evidence_tree import Rows, Tree, grow, unfold
from pagelift.extract.merge import Border, drop_repeated, merge
from pagelift.extract.metadata import summed
from pagelift.extract.plan import Plan, make_plan
from pagelift.extract.questions import Asker, Question, SeenPage
from pagelift.extract.reading import Reading, read
from pagelift.extract.row_counts import count_in_tables, count_rows
from pagelift.schema.keywords import join

if TYPE_CHECKING:
    from pagelift.extract.engines import ReadablePage
    from pagelift.schema import Schema

CUT = "the model's answer was cut off before it"


def extract_by_asking(pages: Iterable[ReadablePage], schema: Schema, asker: Asker, budget: Budget) -> Proposal:
    """Plan the questions about a document and carry the plan out: what the engines that ask a model have in common.

    Raises InvalidOutput with the answer when one is not JSON; EngineError, DocumentError.
    """
    start = time.perf_counter()
    seen = [SeenPage(page) for page in pages]
    if not seen:
        raise EngineError("there is no page to read")
    warnings = [f"page {page.number}: {warning}" for page in seen for warning in page.content.warnings]
    read_s = time.perf_counter() - start
    proposal = carry_out(make_plan(seen, schema, asker, budget), asker, budget)
    metadata = {"words_s": round(read_s, 4), **proposal.metadata}
    return Proposal(proposal.data, proposal.fields, (*warnings, *proposal.warnings), metadata)


def carry_out(plan: Plan, asker: Asker, budget: Budget) -> Proposal:
    """Ask everything that is planned. Raises InvalidOutput with the answer when one is not JSON; EngineError."""
    parts = [(window, plan.question(window, group)) for window in plan.windows for group in plan.groups]
    answers = _read_all([question for _, question in parts], asker, budget)
    readings = [(window, reading) for (window, _), reading in zip(parts, answers, strict=True)]
    warnings = [warning for _, reading in readings for warning in reading.warnings]
    trees = []
    for window in plan.windows:
        of_window = [_tree(reading) for own, reading in readings if own == window]
        trees.append(reduce(lambda a, b: merge(a, b, Border(frozenset())), of_window))
    data, fields = unfold(_merged(plan, trees, warnings))
    metadata = summed([reply.metadata for _, reading in readings for reply in reading.replies])
    cuts = dict.fromkeys(join("", *reading.cut) or "its beginning" for _, reading in readings if reading.cut is not None)
    if cuts:
        metadata["truncated"] = True
        warnings.append(f"truncated: the model's answer was cut off at {', '.join(cuts)}; what it did not come to is null, not attempted")
    metadata |= _check_rows(plan, data, fields, warnings)
    metadata["plan"] = plan.to_dict() | {"answers": sum(len(reading.replies) for _, reading in readings)}
    return Proposal(data, fields, tuple(dict.fromkeys(warnings)), metadata)


def _check_rows(plan: Plan, data: Json, fields: Mapping[str, Field], warnings: list[str]) -> dict[str, Json]:
    """Entries of lists against rows on the pages, for the metadata; differences become warnings."""
    contents = [page.content for page in plan.pages]
    counts = [*count_rows(data, fields, contents), *count_in_tables(data, contents, plan.schema)]
    warnings += [count.warning for count in counts if count.given != count.seen]
    return {"rows": {count.pointer: {"given": count.given, "seen": count.seen} for count in counts}} if counts else {}


def _read_all(questions: Sequence[Question], asker: Asker, budget: Budget) -> list[Reading]:
    """The readings in order; an error in one ends all."""
    if asker.concurrency == 1 or len(questions) == 1:
        return [read(question, asker, budget) for question in questions]
    return list(side_by_side((partial(read, question, asker, budget) for question in questions), asker.concurrency))


def _merged(plan: Plan, trees: Sequence[Tree], warnings: list[str]) -> Tree:
    """The readings of all windows as one."""
    merged, seen = trees[0], set(plan.windows[0])
    for window, tree in zip(plan.windows[1:], trees[1:], strict=True):
        border = Border(frozenset(plan.pages[k].number for k in seen & set(window)))
        merged = merge(merged, tree, border)
        warnings += border.warnings
        seen |= set(window)
    return merged


def _tree(reading: Reading) -> Tree:
    """Values with their places on the pages of the question."""
    data = reading.data
    places = align(data, [page.index for page in reading.question.pages], dict(reading.repeated()))
    fields = answered_fields(data, places, reading.probabilities)
    fields |= {pointer: _noted(fields[pointer], written) for pointer, written in reading.inexact.items() if pointer in fields}
    tree = grow(data, fields)
    for pointer, is_list in reading.unreached():
        tree = _put(tree, pointer.split("/")[1:], Field(pointer, [] if is_list else None, "not_attempted", reason=CUT))
    for pointer, joints in reading.joints.items():
        rows = _node_at(tree, pointer)
        if isinstance(rows, Rows):
            drop_repeated(rows, joints)
    return tree


def _noted(evidence: Field, written: str) -> Field:
    return replace(evidence, reason=f"written as {written}, more digits than double precision holds")


def _node_at(tree: Tree | None, pointer: str) -> Tree | None:
    """The part of a tree at the pointer of a list."""
    for step in pointer.split("/")[1:]:
        tree = tree.get(_name(step)) if isinstance(tree, dict) else None
    return tree


def _put(tree: Tree | None, steps: Sequence[str], evidence: Field) -> Tree:
    """The tree with evidence of an empty value at a pointer; objects around it are made."""
    if not steps:
        return evidence if evidence.value is None else Rows([], evidence)
    if isinstance(tree, Rows):
        number = int(steps[0])
        tree.entries[number] = _put(tree.entries[number], steps[1:], evidence)
        return tree
    known = tree if isinstance(tree, dict) else {}
    return {**known, _name(steps[0]): _put(known.get(_name(steps[0])), steps[1:], evidence)}


def _name(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")
