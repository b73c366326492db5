"""`pagelift models`: what is in the cache of huggingface_hub, fetching into it, and what a checkpoint is."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pagelift.commands import ExitCode, say
from pagelift.models import load_config
from pagelift.models.registry import ARCHITECTURES
from pagelift.weights.hub import KNOWN, cached_models, find_model, look_up
from pagelift.weights.hub import pull as fetch
from pagelift.weights.summary import summarise


def list_models() -> ExitCode:
    """Print the known models and everything in the cache that can be run: id, size, where it is or what it is."""
    cached = {model.id: model for model in cached_models()}
    rows = [(model.id, f"{model.size_gb:.1f} GB", "not in the cache", model.what) for model in KNOWN if model.id not in cached]
    for model in cached.values():
        if model.model_type in ARCHITECTURES:
            what = next((known.what for known in KNOWN if known.id == model.id), model.model_type)
            rows.insert(0, (model.id, f"{model.size / 1e9:.1f} GB", "in the cache", what))
    _table(rows)
    return ExitCode.FINE


def pull(name: str) -> ExitCode:
    """Show the licence, then fetch a model into the cache and print its folder. Raises WeightsError."""
    offer = look_up(name)
    say(f"{offer.id}: {offer.size / 1e9:.1f} GB, licence {offer.licence}")
    if offer.notice:
        say(offer.notice)
    sys.stdout.write(f"{fetch(name)}\n")
    return ExitCode.FINE


def show(name: str) -> ExitCode:
    """Print what a checkpoint is, from its headers alone. Raises WeightsError."""
    folder = find_model(name)
    config = load_config(folder)
    summary = summarise(folder, config.quantization)
    text, vision = config.text, config.vision
    full = text.layer_types.count("full_attention")
    kv_bytes = full * 2 * text.kv_heads * text.head_dim * 2
    rows = [
        ("folder", str(folder)),
        ("model type", config.model_type),
        ("layout", summary.layout.upper()),
        ("layers", f"{len(text.layer_types)}, of which {full} with full attention"),
        ("hidden size", str(text.hidden_size)),
        ("vocabulary", f"{text.vocab_size}{', embeddings tied to the head' if config.tied_embeddings else ''}"),
        ("context", f"{text.max_positions} tokens; keys and values take {kv_bytes:,} bytes per token in bfloat16"),
        ("vision tower", f"{vision.depth} layers, tokens of {vision.patch_size * vision.merge_size} pixels" if vision else "none"),
        ("parameters", f"{summary.parameters / 1e6:,.1f} million in {summary.tensors} tensors"),
        ("size", f"{summary.size / 1e6:,.1f} MB, {summary.bits_per_weight:.2f} bits per weight"),
        ("matrices", ", ".join(f"{count} x {form}" for form, count in summary.formats.items())),
    ]
    _table(rows)
    return ExitCode.FINE


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    for row in rows:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        sys.stdout.write("  ".join([*padded, row[-1]]) + "\n")
