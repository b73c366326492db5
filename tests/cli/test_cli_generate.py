"""`pagelift generate`, `pagelift models` and `extract --engine vlm` from the outside, on the golden checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pagelift.cli import main
from pagelift.commands import generate, models
from pagelift.commands.frames import read_video
from pagelift.core import CorruptDocument, DocumentError, DocumentNotFound, InvalidOutput, UnsupportedDocument
from pagelift.extract import ENGINES
from pagelift.weights import hub
from runtime.scripted import scripted

GOLDEN = Path(__file__).parent.parent / "golden"
DOCUMENT = GOLDEN / "document"
EXPECTED = dict(np.load(DOCUMENT / "expected.npz"))
COMMAND = [sys.executable, "-c", "from pagelift.cli import main; main()"]
Run = Callable[..., tuple[Any, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*arguments: object) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["pagelift", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return call


def save(folder: Path, name: str) -> list[Path]:
    pages = [EXPECTED[key] for key in sorted(EXPECTED) if key.startswith(f"{name}/page")]
    files = [folder / f"{name}-{k}.png" for k in range(len(pages))]
    for page, file in zip(pages, files, strict=True):
        Image.fromarray(page).save(file)
    return files


@pytest.mark.parametrize(("name", "text"), [("one", "Total? 1.234,50 € 金額"), ("three", "Three pages, <|box_start|>in order<|box_end|>.")])
def test_the_answer_is_that_of_transformers(name: str, text: str, run: Run, tmp_path: Path) -> None:
    from pagelift.weights import Tokenizer

    images = [option for file in save(tmp_path, name) for option in ("--image", file)]
    code, out, err = run("generate", "--model", DOCUMENT, "--prompt", text, *images, "--max-tokens", 12)
    tokenizer = Tokenizer.load(DOCUMENT)
    greedy = EXPECTED[f"{name}/greedy"].tolist()
    expected = greedy[: next((k for k, token in enumerate(greedy) if token in tokenizer.stop_tokens), 12)]
    assert (code, out) == (0, tokenizer.decode(expected) + "\n")
    assert f"{len(EXPECTED[f'{name}/tokens'])} prompt tokens with {len(images) // 2} pictures" in err
    assert "tokens/s" in err


def test_prompt_files_pdfs_videos_and_seeds(run: Run, tmp_path: Path, pdf: Callable[..., bytes]) -> None:
    (tmp_path / "prompt.txt").write_text("Hello", encoding="utf-8")
    (tmp_path / "a.pdf").write_bytes(pdf(["one"], ["two"]))
    frames = tmp_path / "frames"
    frames.mkdir()
    for k in range(4):
        Image.new("RGB", (32, 24), (60 * k, 0, 0)).save(frames / f"{k}.png")
    start = ["generate", "-m", DOCUMENT, "-p", f"@{tmp_path / 'prompt.txt'}", "--max-tokens", 5]
    assert "2 pictures" in run(*start, "-i", tmp_path / "a.pdf")[2]
    assert "2 pictures" in run(*start, "--video", frames)[2]
    drawn = [run(*start, "--temperature", 1.5, "--top-p", 0.9, "--seed", seed)[1] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_places_that_a_model_names_are_put_on_the_page_and_checked(
    run: Run, tmp_path: Path, pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(["Total 5"]))  # on a page of 400 x 300 points, at (40, 50)
    ref = "<|object_ref_start|>Total<|object_ref_end|>"
    said = f"Here: {ref}<|box_start|>(95,130),(170,180)<|box_end|> and {ref}<|box_start|>(500,500),(600,600)<|box_end|>"
    monkeypatch.setattr(generate, "load_model", lambda *_: scripted(said))
    start = ("generate", "-m", "m", "-p", "Where?", "-i", path, "--json")
    code, out, err = run(*start)
    answer = json.loads(out)
    assert (code, answer["finish_reason"], answer["pages"]) == (0, "stop", [{"number": 1, "source": str(path), "page": 1}])
    assert answer["written"] == said
    assert "(95,130),(170,180)" in answer["text"]
    assert "<|box_start|>" not in answer["text"]
    right, wrong = answer["claims"]
    assert (right["check"], right["page"], right["box"], right["words"]) == ("confirmed", 1, [38.0, 39.0, 68.0, 54.0], "Total")
    assert (wrong["check"], wrong["words"], wrong["printed"]) == ("elsewhere", "", right["printed"])
    assert "tokens/s" in err
    pixels = json.loads(run(*start, "--box-units", "pixels")[1])["claims"][0]
    assert pixels["box"] != right["box"]
    monkeypatch.setattr(generate, "load_model", lambda *_: scripted("Nothing."))
    assert json.loads(run(*start)[1])["claims"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("generate", "-m", "no/model", "-p", "x"), 2, "pagelift models pull no/model"),
        (("generate", "-m", DOCUMENT, "-p", "@/no/file"), 1, "/no/file"),
        (("generate", "-m", DOCUMENT, "-p", "x", "-i", "/no/picture.png"), 2, "/no/picture.png"),
        (("generate", "-m", DOCUMENT, "-p", "x", "--top-p", "2"), 1, "top_p"),
        (("generate", "-p", "x"), 1, "--model"),
        (("models", "show", "/no/folder"), 2, "/no/folder"),
        (("models", "pull", "folder"), 2, "owner/name"),
        (("extract", "x.pdf", "-s", "{}", "--engine", "layout", "--model", "m"), 1, "uses no model"),
        (("extract", "x.pdf", "-s", "{}", "--engine", "vlm"), 1, "no local model"),
    ],
)
def test_errors_name_the_thing(arguments: tuple[object, ...], code: int, told: str, run: Run) -> None:
    result = run(*arguments)
    assert (result[0], result[1]) == (code, "")
    assert told in result[2]


def test_models_list_show_and_pull(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "datalab-to/lift" in run("models", "list")[1]
    code, out, _ = run("models", "show", GOLDEN / "document_mlx")
    assert code == 0
    assert "MLX" in out
    assert "bits per weight" in out
    order: list[str] = []
    monkeypatch.setattr(models, "look_up", lambda name: hub.Offer(name, "special", 10**9, "Read this first."))
    monkeypatch.setattr(models, "fetch", lambda name: order.append(name) or tmp_path)
    code, out, err = run("models", "pull", "some/model")
    assert (code, out, order) == (0, f"{tmp_path}\n", ["some/model"])
    assert "Read this first." in err


class Talker:
    name = "talker"

    def extract(self, *_: object) -> None:
        raise InvalidOutput("the answer is not JSON", "Well, it depends.")


def test_an_answer_that_is_no_result_is_kept(run: Run, tmp_path: Path, pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "talker", Talker)
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(["Total 5"]))
    code, out, _ = run("extract", path, "-s", "{}", "--format", "jsonl", "--engine", "talker")
    assert code == 2
    assert json.loads(out)["error"] == {"type": "InvalidOutput", "message": "the answer is not JSON", "raw": "Well, it depends."}


def test_the_environment_names_the_model_of_auto_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGELIFT_MODEL", "some/model")
    start = ("extract", "/no/file.pdf", "-s", "{}", "--engine")
    assert "pagelift models pull some/model" in run(*start, "auto")[2]
    assert "/no/file.pdf" in run(*start, "layout")[2]


def test_a_closed_pipe_ends_quietly() -> None:
    command = [*COMMAND, "generate", "-m", str(DOCUMENT), "-p", "x", "--max-tokens", "4000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(30) in (141, 0)
    assert process.stderr
    assert b"Traceback" not in process.stderr.read()


def every(count: int, fps: float) -> list[int]:
    assert fps > 0
    return list(range(count))


def test_videos_are_folders_animations_or_files(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (32, 24), (80 * k, 0, 0)) for k in range(3)]
    animation = tmp_path / "a.gif"
    frames[0].save(animation, save_all=True, append_images=frames[1:], duration=250)
    video = read_video(animation, every)
    assert (len(video.frames), video.indices, video.fps) == (3, [0, 1, 2], 4.0)
    assert video.frames[2].getpixel((5, 5))[0] > video.frames[1].getpixel((5, 5))[0]


def test_a_video_file(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    path = tmp_path / "a.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 5.0, (64, 48))
    for k in range(6):
        writer.write(np.full((48, 64, 3), 40 * k, np.uint8))
    writer.release()
    video = read_video(path, lambda count, _: [0, count - 1])
    assert (len(video.frames), video.indices, video.fps) == (2, [0, 5], 5.0)
    assert np.asarray(video.frames[1]).mean() > 150


@pytest.mark.parametrize(
    ("content", "error"), [(None, DocumentNotFound), (b"nothing", UnsupportedDocument), (b"GIF89a" + bytes(20), DocumentError)]
)
def test_videos_that_cannot_be_read(content: bytes | None, error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "a.gif"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error):
        read_video(path, every)


def test_folders_without_or_with_broken_pictures(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedDocument):
        read_video(tmp_path, every)
    (tmp_path / "a.png").write_bytes(b"broken")
    with pytest.raises(CorruptDocument):
        read_video(tmp_path, every)
