"""A comparison as people read it: tables for a terminal, and the plot of quality against bytes."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pagelift.core import Json
from pagelift.evals.flips import FLIP_KINDS, Flip
from pagelift.evals.plots import Panel, Point, draw_panels
from pagelift.evals.standings import Row, Standings, difference

if TYPE_CHECKING:
    from PIL.Image import Image
    from rich.table import Table

MB = 1e6
VALUE_CHARACTERS = 28


def render(standings: Standings, most_flips: int = 20, width: int | None = None) -> str:
    """All tables as text. most_flips: of each model. width: in characters; None for as wide as it takes."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width or 200, highlight=False, soft_wrap=False)
    console.print(_quality(standings))
    console.print(_machine(standings))
    if len(standings.rows) > 1:
        console.print(_differences(standings))
        console.print(_flip_counts(standings))
    for row in standings.rows[1:]:
        if row.flips and most_flips:
            console.print(_flip_list(row, most_flips))
    for note in standings.notes:
        console.print(f"note: {note}", markup=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _quality(standings: Standings) -> Table:
    first = standings.rows[0]
    what = "fields right", "documents right", "false fills"
    if not standings.labelled:
        what = "fields as ref.", "documents as ref.", "filled otherwise"
    tokens = f"{len(first.values.kl):,} tokens of values in {len(standings.documents)} documents"
    columns = ("model", "MB", "bits/weight", "KL mean", "95%", "median", "p99", "top-1", "perplexity", *what)
    table = _table(f"Quality: {tokens}; reference {first.contender.name}; divergence on backend {standings.backends[1]}", columns)
    for row in standings.rows:
        found = row.values.to_dict()
        table.add_row(
            _name(row),
            f"{row.machine.nbytes / MB:,.1f}",
            f"{row.machine.bits_per_weight:.2f}",
            *(
                kl_text(found[name]) if name != "95%" else _span(row.kl_interval, kl_text)
                for name in ("kl_mean", "95%", "kl_median", "kl_p99")
            ),
            _or_dash(found["top1"], "{:.2%}"),
            _or_dash(found["perplexity_ratio"], "x{:.4f}"),
            f"{row.score.field_accuracy:.2%}",
            f"{row.score.document_accuracy:.1%}",
            f"{row.score.wrong['false fill']} of {row.score.null_fields}",
        )
    return table


def _machine(standings: Standings) -> Table:
    columns = ("model", "peak MB", "prefill t/s", "decode t/s", "answers t/s", "passes/token", "KL of punctuation", "top-1 there", "errors")
    table = _table(f"Machine: backend {standings.backends[0]}; prefill of 512 tokens, decoding one sequence at a token per pass", columns)
    for row in standings.rows:
        found = row.punctuation.to_dict()
        table.add_row(
            _name(row),
            f"{row.machine.peak_bytes / MB:,.0f}",
            f"{row.machine.prefill_tokens_per_s:,.1f}",
            f"{row.machine.decode_tokens_per_s:,.1f}",
            _or_dash(row.answer_tokens_per_s, "{:,.1f}"),
            _or_dash(row.passes_per_token, "{:.3f}"),
            kl_text(found["kl_mean"]),
            _or_dash(found["top1"], "{:.2%}"),
            str(row.score.errors),
        )
    return table


def _differences(standings: Standings) -> Table:
    table = _table(
        "Differences, b less a, with 95% intervals over documents (paired bootstrap)", ("a", "b", "KL mean", "fields", "documents")
    )
    for i, a in enumerate(standings.rows):
        for b in standings.rows[i + 1 :]:
            found = difference(a, b)
            cells = [
                f"{show(part['difference'])} {_span(part['interval'], show)}" if part["difference"] is not None else "-"
                for part, show in ((found["kl_mean"], _signed), (found["field_accuracy"], _points), (found["document_accuracy"], _points))
            ]
            table.add_row(a.contender.name, b.contender.name, *cells)
    return table


def _flip_counts(standings: Standings) -> Table:
    table = _table(f"Fields that are read otherwise than by {standings.rows[0].contender.name}", ("model", *FLIP_KINDS, "in documents"))
    for row in standings.rows[1:]:
        kinds = Counter(flip.kind for flip in row.flips)
        table.add_row(row.contender.name, *(str(kinds[kind]) for kind in FLIP_KINDS), str(len({flip.document for flip in row.flips})))
    return table


def _flip_list(row: Row, most: int) -> Table:
    shown = sorted(row.flips, key=lambda flip: FLIP_KINDS.index(flip.kind))[:most]
    left = f", {len(shown)} of {len(row.flips)} shown" if len(shown) < len(row.flips) else ""
    table = _table(f"Flips of {row.contender.name}{left}", ("document", "field", "what", "true value", "reference", row.contender.name), 6)
    for flip in shown:
        table.add_row(flip.document, flip.pointer, flip.kind, *_values(flip))
    return table


def _values(flip: Flip) -> Sequence[str]:
    return [_short(value) for value in (flip.expected, flip.reference, flip.other)]


def plot(standings: Standings) -> Image:
    """Divergence and accuracy against the bytes of the files."""
    rows = standings.rows
    kl = [
        Point(row.machine.nbytes / MB, mean, row.contender.name, series(row), row.kl_interval) for row in rows[1:] if (mean := _kl(row)) > 0
    ]
    fields = [Point(row.machine.nbytes / MB, 100 * row.score.field_accuracy, row.contender.name, series(row)) for row in rows[1:]]
    level = 100 * rows[0].score.field_accuracy, rows[0].contender.name
    said = "Fields right, %" if standings.labelled else f"Fields as {rows[0].contender.name} reads them, %"
    return draw_panels(
        [
            Panel("Mean KL divergence on tokens of values, nats", kl, log=True, x_title="MB of weight files"),
            Panel(said, fields, x_title="MB of weight files", level=level),
        ]
    )


def series(row: Row) -> str:
    """What points are joined: controls of a kind."""
    return f"control: {row.contender.control_of[1]}" if row.contender.control_of else "models"


def kl_text(value: Json) -> str:
    """A divergence, with as many digits as say something."""
    if value is None:
        return "-"
    return f"{value:.3g}".replace("e-0", "e-")


def _kl(row: Row) -> float:
    return float(row.values.kl.mean()) if len(row.values.kl) else 0.0


def _table(title: str, columns: Sequence[str], text_columns: int = 1) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < text_columns else "right", overflow="fold")
    return table


def _name(row: Row) -> str:
    return row.contender.name


def _or_dash(value: Json, form: str) -> str:
    return "-" if value is None else form.format(value)


def _span(found: Sequence[float] | None, show: Callable[[Json], str]) -> str:
    return "-" if found is None else f"[{show(found[0])}, {show(found[1])}]"


def _signed(value: Json) -> str:
    return ("-" if value < 0 else "+") + kl_text(abs(value))


def _points(value: Json) -> str:
    return f"{100 * value:+.2f}"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 3] + "..."
