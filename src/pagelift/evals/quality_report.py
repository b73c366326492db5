"""The table of a model's quantized variants for docs/benchmarks.md, and its plot, from finished rows.

A row is what `pagelift compare` says of one variant on each material: {"variant", "target", "method", "materials": {name: row}}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pagelift.core import ConfigError, Json
from pagelift.evals.comparison_tables import MB, kl_text
from pagelift.evals.plots import Panel, Point, draw_panels
from pagelift.evals.standings import ByDocument, differences

if TYPE_CHECKING:
    from PIL.Image import Image

GENERATED = "test split"
"""The name of the documents of the generator."""
Rows = Sequence[dict[str, Json]]


def markdown(model: str, rows: Rows, picture: str | None = None) -> str:
    """The section of one model. picture: the plot's place as seen from the page. Every number is from `rows`."""
    names = list(rows[0]["materials"])
    first = rows[0]["materials"][names[0]]
    lines = [f"### Quality of {model} by size", ""]
    read, traced = rows[0]["backends"]
    said = f"Backend {read}; KL on backend {traced}, over {first['value_tokens']:,} tokens of values in {names[0]}"
    others = [f", {rows[0]['materials'][name]['value_tokens']:,} in {name}" for name in names[1:]]
    lines += [f"{said}{''.join(others)}.", ""]
    lines += [*_sizes(rows, names[0]), ""]
    for name in names:
        lines += [f"#### {name}: {rows[0]['materials'][name]['count']} documents", "", *_quality(rows, name), ""]
    for name in names:
        if found := list(_best_against_oq(rows, name)):
            lines += [f"`best` beside `oq` on {name}, the same documents, 95 % intervals:", "", *found, ""]
    if picture:
        lines += [f"![Quality against bytes of {model}]({picture})", ""]
    return "\n".join(lines)


def _sizes(rows: Rows, name: str) -> Iterator[str]:
    yield from _head(("variant", "MB", "bits/weight", "peak MB", "prefill t/s", "decode t/s", "answers t/s", "passes/token"))
    for row in rows:
        found = row["materials"][name]
        cells = [
            f"{found['bytes'] / MB:,.1f}",
            f"{found['bits_per_weight']:.2f}",
            f"{found['peak_bytes'] / MB:,.0f}",
            *(_number(found[key], "{:,.1f}") for key in ("prefill_tokens_per_s", "decode_tokens_per_s", "answer_tokens_per_s")),
            _number(found["passes_per_token"], "{:.3f}"),
        ]
        yield _line(row["variant"], *cells)


def _quality(rows: Rows, name: str) -> Iterator[str]:
    yield from _head(
        (
            "variant",
            "KL mean",
            "95 %",
            "p99",
            "top-1",
            "perplexity",
            "fields",
            "documents",
            "false fills",
            "right to wrong",
            "wrong to right",
        )
    )
    for row in rows:
        found = row["materials"][name]
        span = found["kl_interval"]
        cells = [
            kl_text(found["kl_mean"]),
            f"{kl_text(span[0])} to {kl_text(span[1])}" if span else "-",
            kl_text(found["kl_p99"]),
            _number(found["top1"], "{:.2%}"),
            _number(found["perplexity_ratio"], "x{:.4f}"),
            f"{found['field_accuracy']:.2%}",
            f"{found['document_accuracy']:.1%}",
            f"{found['false_fills']} of {found['null_fields']}",
            str(found["flips"]["right_to_wrong"]),
            str(found["flips"]["wrong_to_right"]),
        ]
        yield _line(row["variant"], *cells)


def _best_against_oq(rows: Rows, name: str) -> Iterator[str]:
    """For every target that was made both ways: how the divergences compare, and the differences with their intervals."""
    by_method = {(row["target"], row["method"]): row["materials"][name] for row in rows}
    targets = [row["target"] for row in rows if row["method"] == "best" and (row["target"], "oq") in by_method]
    if not targets:
        return
    yield from _head(("target", "KL of best / KL of oq", "KL, best less oq", "fields, best less oq", "bytes, best / oq"))
    for target in targets:
        best, oq = by_method[target, "best"], by_method[target, "oq"]
        found = differences(ByDocument.from_dict(oq["by_document"]), ByDocument.from_dict(best["by_document"]))
        ratio = best["kl_mean"] / oq["kl_mean"] if oq["kl_mean"] else None
        fields = found["field_accuracy"]
        yield _line(
            target,
            _number(ratio, "{:.2f}"),
            _difference(found["kl_mean"], lambda v: ("-" if v < 0 else "+") + kl_text(abs(v))),
            _difference(fields, lambda v: f"{100 * v:+.2f}"),
            f"{best['bytes'] / oq['bytes']:.3f}",
        )


def plot(rows: Rows) -> Image:
    """Divergence and accuracy against bytes, for each material."""
    methods = [row["method"] for row in rows]
    named = "best" if "best" in methods else methods[-1]  # one name for all variants of a size, which stand above each other
    panels = []
    for name in rows[0]["materials"]:
        kl, right = [], []
        for row in rows[1:] or rows:
            found = row["materials"][name]
            size, label = found["bytes"] / MB, row["target"] if row["method"] == named else ""
            span = found["kl_interval"]
            kl.append(Point(size, found["kl_mean"] or 0.0, label, row["method"], (span[0], span[1]) if span else None))
            right.append(Point(size, 100 * found["field_accuracy"], label, row["method"]))
        level = 100 * rows[0]["materials"][name]["field_accuracy"], rows[0]["variant"]
        panels.append(Panel(f"{name}: mean KL on tokens of values, nats", kl, log=True, x_title="MB of weight files"))
        panels.append(Panel(f"{name}: fields right, %", right, x_title="MB of weight files", level=level))
    return draw_panels(panels, columns=2)


def put_section(page: str, name: str, section: str) -> str:
    """The page with a section between its markers, in the place of the one before, or at the end."""
    begin, end = f"<!-- begin: pagelift bench {name} -->", f"<!-- end: pagelift bench {name} -->"
    block = f"{begin}\n\n{section.strip()}\n\n{end}"
    if (begin in page) != (end in page):
        raise ConfigError(f"the page has only one of the lines {begin} and {end}; add the other or remove it")
    if begin in page:
        return re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: block, page, flags=re.DOTALL)
    return f"{page.rstrip()}\n\n{block}\n".lstrip()


def _head(columns: Sequence[str]) -> Iterator[str]:
    yield _line(*columns)
    yield _line(*("---" for _ in columns))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: Json, form: str) -> str:
    return "-" if value is None else form.format(value)


def _difference(found: dict[str, Json], show: Callable[[float], str]) -> str:
    if found["difference"] is None:
        return "-"
    span = found["interval"]
    return show(found["difference"]) + (f" [{show(span[0])}, {show(span[1])}]" if span else "")
