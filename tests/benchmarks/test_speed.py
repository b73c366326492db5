"""What `speed.py` prints, and the formulas behind it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

ASKED = ("prefill_tps", "decode_tps", "bandwidth_gbs", "matmul_gflops", "weight_bytes_per_token", "load_s", "peak_gb")
LIMITS = {"bandwidth_gbs": 25.0, "matmul_gflops": 1500.0, "int8_gops": 3000.0}


def test_speed_prints_one_json_object(scripts, tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    speed = scripts("speed")
    monkeypatch.setattr(speed, "run_limits", lambda: LIMITS)
    monkeypatch.setattr("sys.argv", ["speed.py", str(tiny), "--json", "--prompt", "16", "--batch", "2", "--context", "40"])
    speed.main()
    values = json.loads(capsys.readouterr().out)
    assert all(math.isfinite(values[key]) and values[key] > 0 for key in ASKED)
    assert values["context"] == 40
    assert values["bandwidth_share"] == pytest.approx(values["weight_bytes_per_token"] * values["decode_tps"] / 2 / 25e9)
    assert values["peak_gb"] > values["weight_bytes_per_token"] / 1e9, "the head is read whole, so it was in memory"


def test_the_limits_of_a_machine_without_the_extension_are_measured_through_numpy(scripts) -> None:
    machine = scripts("machine")
    assert machine.numpy_bandwidth_gbs(1 << 22) > 0
    assert machine.numpy_matmul_gflops(64) > 0


def test_peak_memory_grows_by_what_is_allocated(scripts) -> None:
    machine = scripts("machine")
    before = machine.peak_bytes()
    block = bytearray(b"1") * (before + (64 << 20))
    assert machine.peak_bytes() >= len(block)


@pytest.mark.parametrize("bits", [4, 5, 6, 8, 16])
def test_bytes_and_operations_of_a_checkpoint(scripts, made, tokenizer, tmp_path: Path, bits: int) -> None:
    shape = made.SHAPES["tiny"]
    made.write_settings(tmp_path, shape, bits, tokenizer)
    total = made.write_weights(tmp_path, shape, bits)
    sizes = scripts("sizes").Sizes.of(tmp_path)
    assert sizes.weight_bytes == total
    decoder = sum(entry.nbytes for entry in made.entries(shape, bits) if not entry.name.startswith("vision_tower."))
    table = sum(entry.nbytes for entry in made.entries(shape, bits) if "embed_tokens" in entry.name)
    assert sizes.token_bytes == decoder + table // made.VOCABULARY, "tied: the table is read as the head, and one row of it as embedding"
    linears = [part for part in made.tensors(shape) if isinstance(part, made.Linear) and ".layers." in part.name]
    assert sizes.layer_macs == sum(part.out_features * part.in_features for part in linears)


def test_a_head_of_its_own_is_read_instead_of_the_embeddings(scripts, made, tokenizer, tmp_path: Path) -> None:
    shape = made.Shape(4, 128, 256, 2, 1, 2, False, made.SHAPES["tiny"].vision, head_dim=64, linear_key_heads=2, linear_dim=64)
    made.write_settings(tmp_path, shape, 4, tokenizer)
    total = made.write_weights(tmp_path, shape, 4)
    sizes = scripts("sizes").Sizes.of(tmp_path)
    parts = {kind: sum(e.nbytes for e in made.entries(shape, 4) if kind in e.name) for kind in ("embed_tokens", "vision_tower")}
    assert sizes.token_bytes == total - sum(parts.values()) + parts["embed_tokens"] // made.VOCABULARY


def test_cache_bytes_count_keys_values_and_states(scripts, made, tiny: Path) -> None:
    sizes = scripts("sizes").Sizes.of(tiny)
    shape = made.SHAPES["tiny"]
    of_a_token = shape.layers // 4 * 2 * shape.kv_heads * shape.head_dim * 2
    assert sizes.cache_bytes(1001) - sizes.cache_bytes(1) == 1000 * of_a_token
    states = shape.layers * 3 // 4 * 4 * (shape.linear_value_heads * shape.linear_dim**2 + 3 * shape.channels)
    assert sizes.cache_bytes(0) == states


def test_a_filled_cache_is_that_of_a_longer_sequence(scripts, tiny: Path) -> None:
    measure = scripts("measure")
    bench = measure.Bench(tiny, measure.Plan())
    short = bench.prefill(8)
    long = bench.fill(short, 100)
    assert (short.length, long.length) == (8, 108)
    assert {layer.length for layer in long.layers if hasattr(layer, "length")} == {108}
    bench.decode(long, 1)
