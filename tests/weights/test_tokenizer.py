"""Token ids, bytes and special tokens by the files of a checkpoint; chat templates in their sandbox."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagelift.core.errors import EngineError, WeightsError
from pagelift.weights import ChatTemplate, TextStream, Tokenizer

FOLDER = Path(__file__).parent.parent / "golden" / "document"
TOKENIZER = Tokenizer.load(FOLDER)


@given(st.text())
def test_text_survives_a_round_trip(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids, skip_special=False) == TOKENIZER.engine.decode(ids, skip_special_tokens=False)


@given(st.lists(st.integers(0, 330), max_size=40))
def test_a_stream_gives_the_text_of_any_tokens(ids: list[int]) -> None:
    stream = TextStream(TOKENIZER)
    pieces = [stream.put([i]) for i in ids]
    assert "".join(pieces) + stream.finish() == TOKENIZER.decode(ids)


def test_a_character_comes_when_its_last_byte_is_there() -> None:
    stream = TextStream(TOKENIZER)
    pieces = [stream.put([i]) for i in TOKENIZER.encode("金")]
    assert pieces[-1] == "金"
    assert set(pieces[:-1]) == {""}


def test_special_tokens_are_left_out_of_text_but_marks_of_thought_are_not() -> None:
    assert TOKENIZER.decode(TOKENIZER.encode("<|im_start|><think>a</think><|im_end|>")) == "<think>a</think>"


def copy(tmp_path: Path, **files: object) -> Path:
    folder = tmp_path / "model"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.safetensors", "*.npz"))
    for name, content in files.items():
        file = folder / name.replace("__", ".")
        file.unlink() if content is None else file.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_the_stop_set_is_the_union_of_all_files(tmp_path: Path) -> None:
    end, turn = TOKENIZER.id("<|endoftext|>"), TOKENIZER.id("<|im_end|>")
    assert TOKENIZER.stop_tokens == {end, turn}
    folder = copy(
        tmp_path, generation_config__json={"eos_token_id": [5, 6]}, tokenizer_config__json={"eos_token": {"content": "<|box_end|>"}}
    )
    assert Tokenizer.load(folder).stop_tokens == {5, 6, turn, TOKENIZER.id("<|box_end|>")}


def test_files_may_be_missing_but_not_damaged(tmp_path: Path) -> None:
    folder = copy(tmp_path, generation_config__json=None, tokenizer_config__json=None)
    assert Tokenizer.load(folder).stop_tokens == {TOKENIZER.id("<|im_end|>")}
    for name, content in (("tokenizer.json", "{"), ("tokenizer_config.json", "[1]"), ("generation_config.json", '{"eos_token_id": "end"}')):
        kept = (FOLDER / name).read_text()
        (folder / name).write_text(content)
        with pytest.raises(WeightsError, match=name):
            Tokenizer.load(folder)
        (folder / name).write_text(kept)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(WeightsError, match=r"tokenizer\.json"):
        Tokenizer.load(folder)


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    content = json.loads((FOLDER / "tokenizer.json").read_text()) | {"decoder": {"type": "Fuse"}}
    with pytest.raises(WeightsError, match="byte-level"):
        Tokenizer.load(copy(tmp_path, tokenizer__json=content))


MESSAGES = [{"role": "user", "content": "hi"}]


def test_templates_are_found_in_every_place_they_are_kept(tmp_path: Path) -> None:
    expected = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert ChatTemplate.load(FOLDER, TOKENIZER).render(MESSAGES) == expected
    source = (FOLDER / "chat_template.jinja").read_text()
    for k, files in enumerate(
        (
            {"chat_template__json": {"chat_template": source}},
            {"tokenizer_config__json": {"chat_template": source}},
            {"tokenizer_config__json": {"chat_template": [{"name": "default", "template": source}, {"name": "tools", "template": ""}]}},
        )
    ):
        folder = copy(tmp_path / str(k), chat_template__jinja=None, **files)
        assert ChatTemplate.load(folder, TOKENIZER).render(MESSAGES) == expected
    with pytest.raises(WeightsError, match="chat template"):
        ChatTemplate.load(copy(tmp_path / "none", chat_template__jinja=None), TOKENIZER)


def test_what_templates_may_use() -> None:
    source = (
        "{{ eos_token }}{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{% endfor %}"
        "{% generation %}{{ messages[0] | tojson }}{% endgeneration %}{{ strftime_now('%Y') | length }}{{ mood }}"
    )
    assert ChatTemplate(source, {"eos_token": "E"}).render([{"role": "ü"}], mood="!") == 'E{"role": "ü"}4!'


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception('no') }}",
        "{{ 1 / 0 }}",
        "{% for i in range(10**9) %}{% endfor %}",
    ],
)
def test_what_templates_may_not_do(source: str) -> None:
    with pytest.raises(EngineError, match="chat template"):
        ChatTemplate(source, {}).render(MESSAGES)
    assert MESSAGES == [{"role": "user", "content": "hi"}]


def test_a_damaged_template_is_refused() -> None:
    with pytest.raises(WeightsError, match="damaged"):
        ChatTemplate("{% if %}", {})
