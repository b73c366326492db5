"""The speed section of docs/benchmarks.md, from the rows of model_table.py."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SHAPES = ("9b", "4b", "2b", "0.8b")
WIDTHS = (4, 5, 6, 8, 16)
PROMPTS = (512, 2048, 16_384)
BATCHES = (1, 4, 8, 16)
OURS = "pagelift"
Rows = Mapping[str, Mapping[str, Any]]


def write(path: Path, rows: Sequence[Mapping[str, Any]], name: str = "") -> None:
    """Put the section between its markers, at the end of a file that has none. name: of the section, for figures of several machines."""
    begin, end = markers(name)
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    section = f"{begin}\n\n{render({row['key']: row for row in rows})}\n\n{end}"
    if begin in old and end in old:
        before, after = old.split(begin)[0], old.split(end, 1)[1]
        path.write_text(before + section + after, encoding="utf-8")
    else:
        path.write_text(f"{old.rstrip()}\n\n{section}\n".lstrip(), encoding="utf-8")


def markers(name: str = "") -> tuple[str, str]:
    """Before and behind the section of this name."""
    by = f"written by `make bench`{name and ', ' + name}"
    return f"<!-- begin: {by} -->", f"<!-- end: {by} -->"


def render(rows: Rows) -> str:
    """The whole section."""
    if not rows:
        return "Nothing has been measured yet."
    parts = [machine_line(rows), "### Models", model_table(rows)]
    for title, table in (("### Beside other programs", peer_table(rows)), ("### What was asked for", demands(rows))):
        if table:
            parts += [title, table]
    return "\n\n".join(parts)


def machine_line(rows: Rows) -> str:
    machine = next(iter(rows.values()))["machine"]
    found = {key: [row["limits"][key] for row in rows.values()] for key in ("bandwidth_gbs", "matmul_gflops")}
    bandwidth, speed = found["bandwidth_gbs"], found["matmul_gflops"]
    level = next((row["runs"][OURS]["level"] for row in rows.values()), None)
    busy = [run["other_cores"] or 0.0 for row in rows.values() for run in row["runs"].values()]
    features = ", ".join(machine["features"])
    products = "bfloat16 products" if "amx_bf16" in machine["features"] else "products of 8 bits"
    return (
        f"{machine['processor']}, {machine['cores']} cores ({features}), {machine['memory_gb']} GB of memory, {machine['system']}; "
        f"instruction set used: {level}. Measured beside the cells: reading {spread(bandwidth)} GB/s, {products} "
        f"{spread(speed)} GFLOP/s. Other processes took {statistics.median(busy):.2f} cores in the median, {max(busy):.2f} at worst."
    )


def spread(values: Sequence[float]) -> str:
    """Lowest to highest."""
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def model_table(rows: Rows) -> str:
    """A line for each shape and width: tokens a second and the shares of the machine's limits."""
    head = ["shape", "bits", "weights GB", *(f"prefill {prompt:,}" for prompt in PROMPTS), *(f"decode x{n}" for n in BATCHES)]
    lines = []
    for shape, bits in ((shape, bits) for shape in SHAPES for bits in WIDTHS):
        found = {prompt: rows[key] for prompt in PROMPTS if (key := f"{shape}/{bits}/{prompt} tokens") in rows}
        if not found:
            continue
        row = next(iter(found.values()))
        decoding = found.get(512, {"runs": {OURS: {}}})
        lines.append(
            [shape, str(bits), f"{row['weight_bytes'] / 1e9:.2f}"]
            + [number(prefill(found[prompt])) if prompt in found else "-" for prompt in PROMPTS]
            + [number(decode(decoding, batch)) for batch in BATCHES]
            + [percent(bandwidth_share(decoding)), percent(matmul_share(found.get(2048, row)))]
            + [f"{decoding['runs'][OURS]['peak_bytes'] / 1e9:.2f}" if decoding["runs"][OURS] else "-"]
        )
    return table([*head, "of bandwidth", "of matrix speed", "peak GB"], lines)


def peer_table(rows: Rows) -> str:
    """What the peers reach in the same minutes, and how many times as fast we are."""
    lines = []
    for row in rows.values():
        for name in (name for name in row["runs"] if name != OURS):
            for what, ours, theirs, better in compared(row, name):
                lines.append([row["key"].replace("/", " "), what, number(ours), name, number(theirs), times(better)])
    versions = sorted({run["version"] for row in rows.values() for run in row["runs"].values() if "version" in run})
    note = "Versions: " + "; ".join(versions) + "."
    return table(["shape, bits, run", "what", "ours", "peer", "theirs", "ours is"], lines) + "\n\n" + note if lines else ""


def compared(row: Mapping[str, Any], peer: str) -> Iterable[tuple[str, float | None, float | None, float | None]]:
    """What both have measured: its name, our number, theirs, and how many times as good ours is."""
    ours, theirs = row["runs"][OURS], row["runs"][peer]
    if theirs.get("page_s") and ours.get("page_s"):
        a, b = statistics.median(ours["page_s"]), statistics.median(theirs["page_s"])
        yield "page, seconds", a, b, b / a
    if theirs.get("prefill_s") and ours.get("prefill_s"):
        a, b = prefill(row), prefill(row, peer)
        yield "prefill, tokens/s", a, b, ratio(a, b)
    for batch in BATCHES:
        a, b = decode(row, batch), decode(row, batch, peer)
        if a and b:
            yield f"decode x{batch}, tokens/s", a, b, ratio(a, b)
    yield "peak, GB", ours["peak_bytes"] / 1e9, theirs["peak_bytes"] / 1e9, theirs["peak_bytes"] / ours["peak_bytes"]


def demands(rows: Rows) -> str:
    """The numbers that the 9B at 4 bits is held to."""
    base, page, long, context = (rows.get(f"9b/4/{what}") for what in ("512 tokens", "page", "2048 tokens", "context"))
    lines: list[list[str]] = []
    if base:
        one = decode(base, 1)
        lines.append(["decoding, one sequence, of the bandwidth", "75 %", percent(bandwidth_share(base))])
        lines.append(["8 sequences together, of the speed of one", "4x", times(ratio(decode(base, 8), one))])
        if "llama.cpp" in base["runs"]:
            lines.append(["decoding beside llama.cpp, same bytes", "1.6x", times(ratio(one, decode(base, 1, "llama.cpp")))])
    if long:
        lines.append(["prefill of 2,048 tokens, of the matrix speed", "45 %", percent(matmul_share(long))])
        if base and "llama.cpp" in base["runs"]:
            against = ratio(prefill(long), prefill(base, "llama.cpp"))
            theirs = base["runs"]["llama.cpp"]["prompt"]
            lines.append([f"prefill of 2,048 tokens beside llama.cpp's ({theirs} tokens)", "5x", times(against)])
    if page and "transformers" in page["runs"]:
        ours, theirs = (statistics.median(page["runs"][name]["page_s"]) for name in (OURS, "transformers"))
        lines.append(["vision tower, one page, of transformers' time", "1.0x", times(ours / theirs)])
    if context:
        long_s, short_s = (statistics.median(samples) for samples in (steps(context, 1), context["runs"][OURS]["short_decode_s"]))
        lines.append(["time of a token at 32,768 tokens, of that at 512", "1.25x", times(long_s / short_s)])
    if long:
        run = long["runs"][OURS]
        allowed = long["weight_bytes"] + 1e9 + run["cache_formula_bytes"]
        held = f"{run['peak_bytes'] / 1e9:.2f} GB (keys, values and states: {run['cache_bytes'] / 1e9:.3f} GB held, "
        held += f"{run['cache_formula_bytes'] / 1e9:.3f} GB by formula)"
        lines.append(["peak with one page and 2,048 tokens", f"{allowed / 1e9:.2f} GB", held])
    return table(["9B at 4 bits", "asked for", "measured"], lines) if lines else ""


def prefill(row: Mapping[str, Any], who: str = OURS) -> float | None:
    run = row["runs"][who]
    times_s = run.get("prefill_s")
    return run.get("prompt", row["plan"]["prompt"]) / statistics.median(times_s) if times_s else None


def steps(row: Mapping[str, Any], batch: int, who: str = OURS) -> list[float]:
    """Seconds of the steps of decoding `batch` sequences; none where that was not measured."""
    times_s = row["runs"][who].get("decode_s", {})
    return times_s.get(str(batch)) or times_s.get(batch) or []  # keys are text when they come from a file


def decode(row: Mapping[str, Any], batch: int, who: str = OURS) -> float | None:
    samples = steps(row, batch, who)
    return batch / statistics.median(samples) if samples else None


def bandwidth_share(row: Mapping[str, Any]) -> float | None:
    """Of what the machine could read, the weights that decoding one sequence reads."""
    speed = decode(row, 1)
    return speed and speed * row["token_bytes"] / row["limits"]["bandwidth_gbs"] / 1e9


def matmul_share(row: Mapping[str, Any]) -> float | None:
    times_s = row["runs"][OURS].get("prefill_s")
    return row["prefill_flops"] / statistics.median(times_s) / row["limits"]["matmul_gflops"] / 1e9 if times_s else None


def ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a and b else None


def number(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))
