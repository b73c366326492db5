"""Pictures, video, template and tokenizer together against transformers, and quantized MLX folders against mlx
(scripts/make_golden_documents.py)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pagelift.backends import installed_backends
from pagelift.backends.reference import unpack_matrix
from pagelift.core.errors import EngineError, WeightsError
from pagelift.models.config import load_config
from pagelift.models.pictures import PictureProcessor, Video, picture_size, video_size
from pagelift.models.preprocessing import Preprocessing
from pagelift.models.prompt import Prompt
from pagelift.runtime import LoadedModel, Runner, RuntimeSettings, Sampling, load_model
from pagelift.weights import WeightReader, load_checkpoint
from precision import close, same_tokens

GOLDEN = Path(__file__).parent.parent / "golden"
DOCUMENT, QUANTIZED = GOLDEN / "document", GOLDEN / "document_mlx"
EXPECTED, EXPECTED_QUANTIZED = dict(np.load(DOCUMENT / "expected.npz")), dict(np.load(QUANTIZED / "expected.npz"))
TEXTS = {"one": "Total? 1.234,50 € 金額", "three": "Three pages, <|box_start|>in order<|box_end|>.", "video": "What moves?"}
LIMITS = Preprocessing(16, 2, 2, min_pixels=65536, max_pixels=16777216)


class Recording(Runner):
    """Keeps the logits that it samples from."""

    def run(self, runs: Sequence[Any]) -> list[Any]:
        logits = super().run(runs)
        self.__dict__.setdefault("rows", []).extend(values()[0] for found in logits for values in found.values())
        return logits


@pytest.fixture(scope="module", params=installed_backends())
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


def prompt(model: LoadedModel, name: str) -> Prompt:
    pages = [Image.fromarray(EXPECTED[key]) for key in sorted(EXPECTED) if key.startswith(f"{name}/page")]
    frames = EXPECTED.get(f"{name}/frames", ())
    videos = [Video([Image.fromarray(frame) for frame in frames], [0, 3, 6, 8, 11], 3.0)] if len(frames) else []
    return model.prompt(TEXTS[name], pages, videos)


def as_bytes(patches: np.ndarray) -> np.ndarray:
    return (patches * 0.5 + 0.5) * 255


@pytest.mark.parametrize("name", TEXTS)
def test_tokens_and_patches(name: str) -> None:
    made = prompt(load_model(DOCUMENT, "reference"), name)
    assert made.tokens.tolist() == EXPECTED[f"{name}/tokens"].tolist()
    grids = [[p.picture.grid.frames, p.picture.grid.rows, p.picture.grid.columns] for p in made.pictures]
    images = EXPECTED[f"{name}/image_grids"].tolist()
    assert grids[: len(images)] == images
    patches = np.concatenate([p.picture.patches() for p in made.pictures[: len(images)]])
    assert np.abs(as_bytes(patches) - EXPECTED[f"{name}/image_patches"]).max() < 1e-3
    if name == "video":
        frames, rows, columns = EXPECTED["video/video_grid"].tolist()
        assert grids[len(images) :] == [[1, rows, columns]] * frames
        patches = np.concatenate([p.picture.patches() for p in made.pictures[len(images) :]])
        assert np.abs(as_bytes(patches) - EXPECTED["video/video_patches"]).max() < 1e-3


@pytest.mark.parametrize("step_tokens", [1000, 17])
@pytest.mark.parametrize("name", TEXTS)
def test_logits_and_greedy_tokens(name: str, step_tokens: int, backend: str) -> None:
    loaded = load_model(DOCUMENT, backend)
    made = prompt(loaded, name)
    runner = Recording(loaded.model, frozenset(), RuntimeSettings(step_tokens=step_tokens))
    sequence = runner.add(made, Sampling(max_tokens=12))
    while runner.active:
        runner.step()
    assert close(runner.rows[0], EXPECTED[f"{name}/logits"][-1], backend)
    assert same_tokens([token.id for token in sequence.output], EXPECTED[f"{name}/greedy"].tolist(), backend)
    assert not sequence.features


@pytest.mark.parametrize("name", ["one", "three"])
def test_quantized_mlx_folder_gives_what_mlx_vlm_gives(name: str, backend: str) -> None:
    loaded = load_model(QUANTIZED, backend)
    runner = Recording(loaded.model, frozenset())
    sequence = runner.add(prompt(loaded, name), Sampling(max_tokens=8))
    while runner.active:
        runner.step()
    assert close(runner.rows[0], EXPECTED_QUANTIZED[f"{name}/logits"], backend)
    assert same_tokens([token.id for token in sequence.output], EXPECTED_QUANTIZED[f"{name}/greedy"].tolist(), backend)


def test_every_packed_module_has_the_values_of_mlx_dequantize() -> None:
    checkpoint, config = load_checkpoint(QUANTIZED), load_config(QUANTIZED)
    reader = WeightReader(checkpoint, config.quantization)
    modules = {
        original.removesuffix(".scales"): name.removesuffix(".scales")
        for name, original in checkpoint.original.items()
        if name.endswith(".scales")
    }
    formats = set()
    for module, name in modules.items():
        bits, group_size = reader.packing(name)
        codes, scales = checkpoint.tensors[f"{name}.weight"], checkpoint.tensors[f"{name}.scales"]
        matrix = reader.embedding(name, codes.shape[0], scales.shape[1] * group_size)
        assert np.array_equal(unpack_matrix(matrix, np.arange(2)), EXPECTED_QUANTIZED[f"rows/{module}"])
        formats.add((bits, group_size))
    assert formats == {(4, 64), (8, 64), (8, 32), (6, 32), (5, 64), (3, 64)}


def test_sizes_are_those_of_transformers() -> None:
    for (height, width), frames, picture, video in zip(
        *(EXPECTED[key].tolist() for key in ("sides", "counts", "picture_sizes", "video_sizes")), strict=True
    ):
        assert picture_size(height, width, LIMITS) == tuple(picture)
        assert video_size(frames, height, width, LIMITS) == tuple(video)


def test_pictures_that_cannot_be_read_are_refused() -> None:
    loaded = load_model(DOCUMENT, "reference")
    with pytest.raises(EngineError, match="too narrow"):
        loaded.prompt("x", [Image.new("RGB", (4000, 4))])
    with pytest.raises(EngineError, match=r"2 places for pictures.*1 pictures"):
        loaded.prompt("x <|image_pad|>", [Image.new("RGB", (40, 40))])
    with pytest.raises(EngineError, match="places for videos"):
        loaded.prompt("x <|video_pad|>")
    with pytest.raises(EngineError, match="at least 2 frames"):
        loaded.prompt("x", videos=[Video([Image.new("RGB", (40, 40))], [0], 1.0)])
    with pytest.raises(EngineError, match="all of one size"):
        loaded.prompt("x", videos=[Video([Image.new("RGB", (40, 40)), Image.new("RGB", (40, 48))], [0, 1], 1.0)])


def test_pictures_of_any_mode_become_rgb() -> None:
    processor = PictureProcessor.load(DOCUMENT, load_config(DOCUMENT).vision)
    gray = processor.picture(Image.new("L", (40, 40), 128))
    assert np.abs(as_bytes(gray.patches()) - 128).max() < 1e-3


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"patch_size": 14}, "patch_size"),
        ({"image_mean": None}, "image_mean"),
        ({"image_std": [0.5, 0, 0.5]}, "image_std"),
        ({"size": {"shortest_edge": 10}}, "longest_edge"),
        ({"size": {"shortest_edge": 100, "longest_edge": 10}}, "size"),
        ({"image_processor_type": "CLIPImageProcessor"}, "image_processor_type"),
        ({"resample": 9}, "resample"),
        ({"do_resize": "yes"}, "do_resize"),
    ],
)
def test_settings_that_are_wrong_are_named(change: dict, named: str, tmp_path: Path) -> None:
    settings = json.loads((DOCUMENT / "preprocessor_config.json").read_text()) | change
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(WeightsError, match=named):
        PictureProcessor.load(tmp_path, load_config(DOCUMENT).vision)


def test_settings_in_one_file_and_older_names(tmp_path: Path) -> None:
    image, video = (json.loads((DOCUMENT / f"{kind}preprocessor_config.json").read_text()) for kind in ("", "video_"))
    vision = load_config(DOCUMENT).vision
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": image, "video_processor": video}))
    assert vars_of(PictureProcessor.load(tmp_path, vision)) == vars_of(PictureProcessor.load(DOCUMENT, vision))
    size = image.pop("size")
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps(image | {"min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"]})
    )
    assert vars_of(PictureProcessor.load(tmp_path, vision)) == vars_of(PictureProcessor.load(DOCUMENT, vision))


def vars_of(processor: PictureProcessor) -> tuple:
    return processor.image, processor.video
