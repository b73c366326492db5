"""Checkpoints beside each other: a tiny one with random weights, the same once more, and the same at two bits."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pagelift import ConfigError, EngineError
from pagelift.cli import main
from pagelift.commands.compare import Documents, load_material
from pagelift.evals import comparison
from pagelift.evals.comparison import check_comparable, contenders
from pagelift.evals.measuring import Order
from pagelift.weights.checkpoint import load_checkpoint
from pagelift.weights.quant.formats import Format, Sizes
from pagelift.weights.quant.plain import write_plain

GOLDEN = Path(__file__).parent.parent / "golden" / "document"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders bf16, copy and two-bits."""
    root = tmp_path_factory.mktemp("models")
    for name in ("bf16", "copy"):
        shutil.copytree(GOLDEN, root / name)
    checkpoint = load_checkpoint(GOLDEN)
    modules = [module for module in Sizes.of(checkpoint, tied=False).text_modules if module.in_features % 32 == 0]
    write_plain(checkpoint, root / "two-bits", {module.name: Format(2, 32) for module in modules}, tied=False)
    return root


def run_command(*arguments: object) -> int:
    argv = sys.argv
    sys.argv = ["pagelift", *map(str, arguments)]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = argv
    raise AssertionError


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def go(*arguments: object) -> tuple[int, str, str]:
        code = run_command("compare", *arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


@pytest.fixture(scope="module")
def work(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of measurements of all three."""
    folder = tmp_path_factory.mktemp("work")
    assert run_command("compare", models / "bf16", models / "copy", models / "two-bits", "--count", 3, "--work", folder) == 0
    return folder


@pytest.fixture
def found(models: Path, work: Path, run: Run) -> dict[str, Any]:
    code, out, _ = run(models / "bf16", models / "copy", models / "two-bits", "--count", 3, "--work", work, "--json")
    assert code == 0
    result: dict[str, Any] = json.loads(out)
    return result


def test_a_model_does_not_differ_from_itself(found: dict[str, Any]) -> None:
    first, copy, _ = found["rows"]
    for row in (first, copy):
        assert (row["kl_mean"], row["kl_median"], row["kl_p99"], row["top1"], row["perplexity_ratio"]) == (0, 0, 0, 1, 1)
        assert row["punctuation"]["kl_mean"] == 0
        assert row["kl_interval"] == [0, 0]
        assert sum(row["flips"].values()) == 0


def test_two_bits_differ(found: dict[str, Any]) -> None:
    first, _, row = found["rows"]
    assert [r["name"] for r in found["rows"]] == ["bf16", "copy", "two-bits"]
    assert 0 < row["kl_median"] <= row["kl_p99"] < 50
    assert row["kl_interval"][0] <= row["kl_mean"] <= row["kl_interval"][1]
    assert row["top1"] < 1
    assert row["bytes"] < first["bytes"]
    assert row["bits_per_weight"] < first["bits_per_weight"] == 16
    assert row["punctuation"]["tokens"] > 0
    for name in ("peak_bytes", "prefill_tokens_per_s", "decode_tokens_per_s", "answer_tokens_per_s"):
        assert row[name] > 0
    assert 0 < row["passes_per_token"] <= 1
    for name in ("field_accuracy", "document_accuracy", "false_fill_rate"):
        assert 0 <= row[name] <= 1
    (pair,) = [pair for pair in found["pairs"] if (pair["a"], pair["b"]) == ("bf16", "two-bits")]
    assert pair["kl_mean"]["difference"] == pytest.approx(row["kl_mean"])
    assert sum(row["flips"].values()) == len([flip for flip in found["flips"] if flip["model"] == "two-bits"]) > 0
    assert {"document", "pointer", "kind", "expected", "reference", "other"} < set(found["flips"][0])


def test_tables_and_plot_from_kept_measurements(models: Path, work: Path, run: Run, tmp_path: Path) -> None:
    before = sorted(work.rglob("*"))
    plot = tmp_path / "plot.png"
    code, out, _ = run(models / "bf16", models / "copy", models / "two-bits", "--count", 3, "--work", work, "--plot", plot, "--flips", 1)
    assert code == 0
    assert sorted(work.rglob("*")) == before  # nothing was measured again
    for text in ("KL mean", "two-bits", "right -> wrong", "Flips of two-bits, 1 of", "peak MB", "passes/token"):
        assert text in out
    assert Image.open(plot).size[0] > 1000


def test_divergence_of_another_backend(models: Path, found: dict[str, Any], run: Run, tmp_path: Path) -> None:
    options = ("--count", 2, "--backend", "cpu", "--divergence-backend", "reference", "--work", tmp_path, "--json")
    code, out, _ = run(models / "bf16", models / "two-bits", *options)
    assert code == 0
    result = json.loads(out)
    assert (result["backend"], result["divergence_backend"]) == ("cpu", "reference")
    assert result["rows"][0]["kl_mean"] == 0
    assert 0.5 < result["rows"][1]["kl_mean"] / found["rows"][2]["kl_mean"] < 2
    assert all((folder / "finished").is_file() for folder in tmp_path.iterdir() if not folder.name.startswith(("generated", "pages")))


def test_without_true_values_the_reference_decides(models: Path, run: Run, tmp_path: Path, pdf: Callable[..., bytes]) -> None:
    (tmp_path / "documents").mkdir()
    for name in ("one", "two"):
        (tmp_path / "documents" / f"{name}.pdf").write_bytes(pdf(["Total 12", name]))
    schema = '{"type": "object", "properties": {"total": {"type": "number"}, "paid": {"type": "boolean"}}}'
    code, out, _ = run(models / "bf16", models / "two-bits", "--data", tmp_path / "documents", "--schema", schema, "--json")
    assert code == 0
    found = json.loads(out)
    assert not found["labelled"]
    first, other = found["rows"]
    assert first["field_accuracy"] == first["document_accuracy"] == 1
    assert other["value_tokens"] > 0
    wrong = round((1 - other["field_accuracy"]) * other["fields"])
    assert wrong == other["flips"]["right_to_wrong"] == sum(other["flips"].values())
    assert {flip["document"] for flip in found["flips"]} <= {"one.pdf", "two.pdf"}


def test_a_schema_and_true_values_may_lie_beside_the_documents(tmp_path: Path, pdf: Callable[..., bytes]) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.pdf").write_bytes(pdf([name]))
        (tmp_path / f"{name}.json").write_text('{"a": 1}')
    (tmp_path / "schema.json").write_text('{"properties": {"a": {"type": "number"}}}')
    material = load_material(Documents(tmp_path), tmp_path / "work")
    assert material.labelled
    assert [(case.id, case.truth()) for case in material.cases] == [("one.pdf", {"a": 1}), ("two.pdf", {"a": 1})]
    (tmp_path / "two.json").unlink()
    assert not load_material(Documents(tmp_path), tmp_path / "work").labelled
    assert not load_material(Documents(tmp_path, "{}"), tmp_path / "work").labelled


def test_what_cannot_be_compared_is_refused(models: Path, run: Run, tmp_path: Path) -> None:
    one = models / "bf16"
    other = tmp_path / "other"
    shutil.copytree(models / "copy", other)
    text = json.loads((other / "tokenizer.json").read_text())
    text["added_tokens"][-1]["content"] = "<|changed|>"
    (other / "tokenizer.json").write_text(json.dumps(text))
    with pytest.raises(ConfigError, match="different tokenizers"):
        check_comparable([str(one), str(other)])
    config = json.loads((other / "config.json").read_text())
    config["text_config"]["vocab_size"] += 32
    (other / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="vocabulary of"):
        check_comparable([str(one), str(other)])
    words = tmp_path / "words"
    shutil.copytree(models / "copy", words)
    (words / "pagelift.json").write_text('{"prompt": "words-3"}')
    with pytest.raises(ConfigError, match=r"pagelift\.json"):
        check_comparable([str(one), str(words)])
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, message in (
        ((one,), "two models or more"),
        ((one, one), "named twice"),
        ((one, tmp_path / "none"), "no folder"),
        ((one, models / "copy", "--data", tmp_path / "none"), "is no folder"),
        ((one, models / "copy", "--data", empty), "give --schema"),
        ((one, models / "copy", "--data", empty, "--schema", "{}"), "holds no document"),
        ((one, models / "copy", "--schema", "{}"), "name their folder with --data"),
    ):
        code, _, err = run(*arguments)
        assert code in (1, 2)
        assert message in err


class Deadly:
    """Ends the process that it is sent to."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (1,)


def test_a_process_that_is_killed_is_an_error(models: Path, tmp_path: Path) -> None:
    order = Order(str(models / "copy"), "auto", (Deadly(),), tmp_path, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="copy: the process that measured it was ended from outside"):
        comparison._measure_apart(order, "copy", None)


def test_an_error_of_a_model_is_told_as_such(models: Path, run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(models / "copy", broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    code, _, err = run(broken, models / "copy", "--count", 2)
    assert code == 2
    assert "broken/model.safetensors: tensor" in err


def test_an_interrupted_comparison_goes_on(models: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(comparison, "done", interrupt)
        code, _, err = run(models / "bf16", models / "copy", "--count", 2, "--work", tmp_path)
    assert code == 130
    assert "the same command goes on" in err


def test_names_in_tables(tmp_path: Path) -> None:
    for name in ("a/oQ4", "b/oQ4", "b/oQ3"):
        (tmp_path / name).mkdir(parents=True)
    paths = [str(tmp_path / name) for name in ("a/oQ4", "b/oQ4", "b/oQ3")]
    assert [one.name for one in contenders([*paths, "owner/lift"])] == [paths[0], paths[1], "oQ3", "lift"]
