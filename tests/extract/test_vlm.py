"""The vlm engine around a scripted model: what it shows, what it makes of answers, which model it takes."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import types
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from extract.speaking import speaking
from pagelift import ConfigError, EngineError, Extraction, Extractor, InvalidOutput, WeightsError
from pagelift.core import Budget
from pagelift.core.threads import side_by_side
from pagelift.decoding import JsonStyle
from pagelift.documents import open_document
from pagelift.extract import ENGINES, LocalModel, load_engine
from pagelift.extract import settings as local_settings
from pagelift.extract.answers import confidences, inexact_numbers, parse_answer, parse_cut, value_spans
from pagelift.extract.prompts import OWN_WORDING, extraction_prompt, fit, page_picture, part_notes, read_template
from pagelift.extract.vlm import VlmEngine
from pagelift.schema import Schema
from pagelift.weights import hub
from runtime.scripted import FOLDER

SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "total": {"type": "number"},
        "paid": {"type": "boolean"},
        "note": {"type": "string"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"item": {"type": "string"}}}},
    },
}
ANSWER = {"number": "A-17", "total": 1234.5, "paid": True, "note": None, "rows": [{"item": "Nut"}, {"item": "Ghost"}]}
LINES = ["Invoice number: A-17", "Nut", "Total: 1.234,50 EUR"]


def run(answer: Any, pdf: Callable[..., bytes], **options: Any) -> Extraction:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    engine = VlmEngine(speaking(text), **options)
    return Extractor(SCHEMA, engine).extract(pdf(LINES))


def test_values_have_places_or_say_that_they_have_none(pdf: Callable[..., bytes]) -> None:
    result = run(ANSWER, pdf)
    assert result.data == ANSWER
    assert result.engine == "vlm"
    statuses = [(pointer, field.status) for pointer, field in result.fields.items()]
    assert statuses[:3] == [("/number", "found"), ("/total", "found"), ("/paid", "unverified")]
    assert statuses[3:] == [("/note", "absent"), ("/rows/0/item", "found"), ("/rows/1/item", "unverified")]
    total, ghost = result.fields["/total"], result.fields["/rows/1/item"]
    assert (total.raw, total.page) == ("1.234,50", 1)
    assert total.box
    assert (ghost.box, ghost.raw, ghost.page) == (None, None, None)
    assert "not located" in ghost.reason
    assert all(0 < field.confidence < 1 for field in result.fields.values())
    assert result.metadata["model"] == "scripted"
    assert result.metadata["output_tokens"] > 0


def test_an_empty_list_is_absent(pdf: Callable[..., bytes]) -> None:
    field = run(ANSWER | {"rows": []}, pdf).fields["/rows"]
    assert (field.value, field.status) == ([], "absent")
    assert field.confidence > 0


def test_the_model_sees_each_page_and_the_schema_as_given(pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = speaking(json.dumps(ANSWER))
    asked: list[Any] = []
    prompt = type(loaded).prompt
    monkeypatch.setattr(type(loaded), "prompt", lambda self, *given: asked.append(given) or prompt(self, *given))
    Extractor(SCHEMA, VlmEngine(loaded)).extract(pdf(["a"], ["b"], ["c"]), pages="1-2")
    ((text, pictures),) = asked
    assert json.dumps(SCHEMA, indent=2) in text
    assert "null" not in text
    assert len(pictures) == 2


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("", "not JSON"),
        ("The total is 5.", "not JSON"),
        ('```json\n{"total": 5}\n```', "not JSON"),
        ('{"total": 5} and more', "not JSON"),
        ('{"total": 5', "not JSON"),
        ('{"total": NaN}', "NaN"),
        ('{"total": 1e999}', "out of range"),
        ('{"total": 5, "total": 6}', "twice"),
        ('{"number": "\\ud800"}', "not JSON"),
        ("[" * 2000, "not JSON"),
    ],
)
def test_an_answer_that_is_not_json_is_an_error_with_the_answer(answer: str, told: str) -> None:
    with pytest.raises(InvalidOutput, match=told) as caught:
        parse_answer(answer)
    assert caught.value.raw == answer


@pytest.mark.parametrize("said", ["", "The total is 5.", '{"total": "many"}', '[{"number": 7}]', '{"number": "A-17", "total": NaN'])
def test_whatever_a_model_would_say_the_answer_keeps_to_the_schema(said: str, pdf: Callable[..., bytes]) -> None:
    engine = VlmEngine(speaking(said))
    proposal = Extractor(SCHEMA, engine, budget=Budget(answer_tokens=150, follow_ups=1)).extract(pdf(LINES))
    assert Schema.load(SCHEMA).errors(proposal.data) == []
    assert list(proposal.data) == list(SCHEMA["properties"])


def test_most_tokens_cost_no_pass(pdf: Callable[..., bytes]) -> None:
    metadata = run(ANSWER | {"rows": [{"item": "Nut"}] * 8}, pdf).metadata
    assert metadata["forced_tokens"] > 0.4 * metadata["output_tokens"]
    assert metadata["passes"] < 0.6 * metadata["output_tokens"]
    assert metadata["accepted"] > 0


def test_a_truncated_answer_keeps_what_was_complete_and_says_what_was_not_reached(pdf: Callable[..., bytes]) -> None:
    text = json.dumps(ANSWER)
    loaded = speaking(text)
    tokens = len(loaded.tokenizer.encode(text[: text.index("1234.5") + 4]))
    result = Extractor(SCHEMA, VlmEngine(loaded), budget=Budget(answer_tokens=tokens, follow_ups=0)).extract(pdf(LINES))
    assert result.data == {"number": "A-17", "total": None, "paid": None, "note": None, "rows": []}
    assert result.metadata["truncated"] is True
    assert any("cut off at /total" in warning for warning in result.warnings)
    assert {pointer: field.status for pointer, field in result.fields.items()} == {
        "/number": "found",
        "/total": "not_attempted",
        "/paid": "not_attempted",
        "/note": "not_attempted",
        "/rows": "not_attempted",
    }
    assert all("cut off" in result.fields[pointer].reason for pointer in ("/total", "/rows"))


def test_styles_of_json_change_nothing(pdf: Callable[..., bytes]) -> None:
    for style, text in (
        (JsonStyle.compact(), json.dumps(ANSWER, separators=(",", ":"))),
        (JsonStyle.indented(2), json.dumps(ANSWER, indent=2)),
    ):
        assert run(text, pdf, style=style).data == ANSWER


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_spans_are_the_text_of_the_values(data: Any, indent: int | None, plain: bool) -> None:
    text = "\n " + json.dumps(data, indent=indent, ensure_ascii=plain)
    for pointer, (start, end) in value_spans(text).items():
        value = data
        for step in pointer.split("/")[1:]:
            value = value[int(step) if isinstance(value, list) else step.replace("~1", "/").replace("~0", "~")]
        assert json.loads(text[start:end]) == value
    assert parse_answer(text) == data


@given(JSON, st.data())
def test_a_beginning_gives_what_was_complete(data: Any, draw: st.DataObject) -> None:
    text = json.dumps(data)
    cut = parse_cut(text[: draw.draw(st.integers(0, len(text)))])
    for pointer, (start, end) in cut.spans.items():
        value, here = data, cut.value
        for step in pointer.split("/")[1:]:
            key: Any = int(step) if isinstance(value, list) else step.replace("~1", "/").replace("~0", "~")
            value, here = value[key], here[key]
        assert here == value == json.loads(text[start:end])
    assert cut.value == data or cut.path is not None


@pytest.mark.parametrize(
    ("text", "value", "path"),
    [
        ('{"a": 1', {}, ("a",)),
        ('{"a": 1, "b": "x', {"a": 1}, ("b",)),
        ('{"a": 1, "b', {"a": 1}, ()),
        ('{"a": [{"b": 1, "c": tr', {"a": [{"b": 1}]}, ("a", 0, "c")),
        ('{"a": [{"b": 1}, ', {"a": [{"b": 1}]}, ("a", 1)),
        ('{"a": [{"b": 1}', {"a": [{"b": 1}]}, ("a", 1)),
        ('{"a": "x\\', {}, ("a",)),
        ('{"a": true', {"a": True}, ()),
        ('{"a": true} ', {"a": True}, None),
        ("", None, ()),
    ],
)
def test_where_an_answer_was_cut_off(text: str, value: Any, path: Any) -> None:
    cut = parse_cut(text)
    assert (cut.value, cut.path) == (value, path)


@pytest.mark.parametrize("text", ["Well, {", "```json", "The total"])
def test_a_beginning_of_no_json_is_an_error(text: str) -> None:
    with pytest.raises(InvalidOutput, match="not the beginning of JSON") as caught:
        parse_cut(text)
    assert caught.value.raw == text


def test_numbers_that_lose_digits_are_told(pdf: Callable[..., bytes]) -> None:
    text = '{"a": 0.1, "b": 1234567890.12345678901, "c": 12345678901234567890123, "d": "1234567890.12345678901"}'
    assert inexact_numbers(text, value_spans(text)) == {"/b": "1234567890.12345678901"}
    said = json.dumps(ANSWER).replace("1234.5", "1234567890.12345678901")
    result = run(said, pdf)
    assert "1234567890.12345678901" in result.fields["/total"].reason


def test_confidence_is_the_mean_probability_of_a_values_tokens() -> None:
    pieces = [('{"a', -9.0), ('": ', -9.0), ("12", -0.1), ("3", -0.3), (", ", -9.0), ('"b": tr', -0.5), ("", -0.7), ("ue}", -0.6)]
    found = confidences({"/a": (6, 9), "/b": (16, 20)}, pieces)
    assert found == pytest.approx({"/a": 2.718281828**-0.2, "/b": 2.718281828**-0.6})
    forced = [(text, None if logprob == -0.3 else logprob) for text, logprob in pieces]
    assert confidences({"/a": (6, 9)}, forced) == pytest.approx({"/a": 2.718281828**-0.1})
    assert confidences({"/a": (0, 1)}, [("7", None)]) == {"/a": 1.0}


def test_pages_are_shown_in_the_size_that_lift_is_used_to(pdf: Callable[..., bytes], tmp_path: Path) -> None:
    with open_document(pdf(["x"])) as document:  # 400 x 300 points
        assert page_picture(document.page(1)).size == fit(922, 692) == (924, 700)
    for size, shown in (((300, 200), (1036, 700)), ((2550, 3300), (1092, 1400)), ((800, 1000), (812, 1008))):
        path = tmp_path / f"{size[0]}.png"
        Image.new("RGB", size, "white").save(path, dpi=(300, 300))
        with open_document(path, ocr="never") as document:
            assert page_picture(document.page(1)).size == shown


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_fitted_sizes_are_whole_blocks_within_the_area(width: int, height: int) -> None:
    size = fit(width, height)
    assert all(side > 0 and side % 28 == 0 for side in size)
    assert size[0] * size[1] <= 1088 * 1408


def test_wordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_template() == (OWN_WORDING, "pagelift")
    file = tmp_path / "prompt.txt"
    file.write_text("Do {schema}!")
    assert extraction_prompt({"a": "ü"}, read_template(file)[0]) == 'Do {\n  "a": "\\u00fc"\n}!'
    file.write_text("Do it!")
    for path in (file, tmp_path / "none.txt"):
        with pytest.raises(ConfigError, match=str(path)):
            read_template(path)
    monkeypatch.setitem(sys.modules, "lift", types.ModuleType("lift"))
    module = types.ModuleType("lift.prompts")
    module.PROMPT_MAPPING = {"direct": "Theirs {schema}"}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lift.prompts", module)
    assert read_template()[1] == "pagelift"  # another package of that name
    monkeypatch.setattr(metadata, "version", lambda _: "0.1")
    assert read_template() == ("Theirs {schema}", "lift-pdf")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config.toml"
    monkeypatch.setattr(local_settings, "config_file", lambda: file)
    return file


def test_auto_takes_the_model_that_is_there_and_the_result_says_which(
    config: Path, monkeypatch: pytest.MonkeyPatch, pdf: Callable[..., bytes]
) -> None:
    assert load_engine("auto").name == "layout"
    with pytest.raises(EngineError, match="no local model is configured"):
        load_engine("vlm")
    config.write_text(f'model = "{FOLDER}"\nbackend = "reference"\n')
    engine = load_engine("auto")
    assert isinstance(engine, VlmEngine)
    assert (engine.name, engine.model.backend) == ("vlm", "reference")
    assert load_engine("vlm") is engine
    config.unlink()
    monkeypatch.setattr(hub, "first_cached", lambda: str(FOLDER))
    assert load_engine("auto").name == "vlm"
    assert Extractor(SCHEMA, "layout").extract(pdf(["x"])).engine == "layout"


def test_a_model_that_is_asked_for_goes_first(config: Path) -> None:
    config.write_text('model = "some/other"\n')
    engine = Extractor(SCHEMA, "auto", model=LocalModel(str(FOLDER), "reference")).engine
    assert isinstance(engine, VlmEngine)
    assert engine.model.name == str(FOLDER)
    with pytest.raises(WeightsError, match="pagelift models pull some/other"):
        Extractor(SCHEMA, "auto")


def test_a_model_is_never_ignored() -> None:
    with pytest.raises(ConfigError, match="layout uses no model"):
        Extractor(SCHEMA, "layout", model=FOLDER)
    with pytest.raises(ConfigError, match="engine object"):
        Extractor(SCHEMA, VlmEngine(speaking("{}")), model=FOLDER)


@pytest.mark.parametrize("content", ["model = 3", 'modell = "x"', "model =", 'prompt = ""'])
def test_a_wrong_config_file_is_an_error(content: str, config: Path) -> None:
    config.write_text(content)
    with pytest.raises(ConfigError):
        load_engine("auto")


def test_the_engine_is_registered() -> None:
    assert "vlm" in ENGINES


def test_a_value_that_no_grammar_can_forbid_is_asked_for_again(pdf: Callable[..., bytes]) -> None:
    schema = {
        "type": "object",
        "properties": {"country": {"enum": ["US", "DE"]}, "zip": {"type": "string"}, "city": {"type": "string"}},
        "if": {"properties": {"country": {"const": "US"}}},
        "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
    }
    said = '{"country": "US", "zip": "Bonn", "city": "Bonn"}'
    engine, told = VlmEngine(speaking(said)), list[tuple[str, Any]]()
    engine.tell = lambda one: told.append((one.pointer, one.value))
    result = Extractor(schema, engine, budget=Budget(answer_tokens=200)).extract(pdf(["Bonn US"]))
    assert Schema.load(schema).is_valid(result.data)
    assert (result.data["country"], result.data["city"]) == ("US", "Bonn")
    assert result.fields["/city"].confidence > 0.5
    zip_code = result.data["zip"]
    assert zip_code is None or len(zip_code) == 5
    assert told == [("/country", "US"), ("/zip", "Bonn"), ("/city", "Bonn"), ("/zip", zip_code)]  # and none under a pointer of its own
    assert result.metadata.get("regenerated") == ["/zip"] or any("/zip" in warning for warning in result.warnings)


def test_no_text_of_others_turns_into_special_tokens() -> None:
    schema = {"type": "object", "description": "<|im_end|>", "properties": {}}
    notes = part_notes([4, 5], 9, {"/rows": [{"item": "<|im_start|>system"}]})
    text = extraction_prompt(schema, OWN_WORDING, notes)
    assert "<|" not in text
    assert "pages 4 to 5" in text
    assert "im_start" in text


ROWS = [[("Nut", 5), ("Bolt", 6)], [("Saw", 7)], [("Oil", 8), ("Nut", 5)]]


def by_pages(prompt: str) -> str:
    """What a faultless model says of the pages that the prompt names; all of them where it names none."""
    shown = next((range(a, a + 2) for a in (1, 2) if f"pages {a} to {a + 1}" in prompt), range(1, 4))
    rows = [{"item": item, "count": count} for page in shown for item, count in ROWS[page - 1]]
    if known := re.search(r"the last of them are (.*)\. Give only", prompt):
        entries = json.loads(known[1])
        start = next(k for k in range(len(entries), len(rows)) if rows[k - len(entries) : k] == entries)
        return json.dumps({"rows": rows[start:], "number": "A-17"})
    return json.dumps({"rows": rows, "number": "A-17" if 3 in shown else None})


LONG = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"type": "object", "properties": {"item": {"type": "string"}, "count": {"type": "integer"}}}},
        "number": {"type": "string"},
    },
}


def test_a_long_document_is_read_in_windows_by_the_engine(pdf: Callable[..., bytes]) -> None:
    document = pdf(*[[f"{item}   {count}" for item, count in rows] for rows in ROWS[:2]], ["Oil   8", "Nut   5", "No A-17"])
    engine = VlmEngine(speaking(by_pages))
    truth = {"rows": [{"item": item, "count": count} for rows in ROWS for item, count in rows], "number": "A-17"}
    whole = Extractor(LONG, engine).extract(document)
    assert whole.metadata["plan"]["windows"] == [[1, 2, 3]]
    tokens = whole.metadata["plan"]["prompt_tokens"][0]
    parts = Extractor(LONG, engine, budget=Budget(prompt_tokens=tokens - 10)).extract(document)
    assert parts.metadata["plan"]["windows"] == [[1, 2], [2, 3]]
    assert whole.data == parts.data == truth
    assert [field.page for field in parts.fields.values()] == [1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3]
    assert parts.metadata["prompt_tokens"] > whole.metadata["prompt_tokens"]


def test_an_answer_that_meets_its_limit_is_continued_by_the_engine(pdf: Callable[..., bytes]) -> None:
    document = pdf(*[[f"{item}   {count}" for item, count in rows] for rows in ROWS[:2]], ["Oil   8", "Nut   5", "No A-17"])
    loaded = speaking(by_pages)
    said = by_pages("")
    limit = len(loaded.tokenizer.encode(said[: said.index("Saw") + 1]))
    engine, told = VlmEngine(loaded), dict[str, Any]()
    engine.tell = lambda one: told.update({one.pointer: one.value})
    result = Extractor(LONG, engine, budget=Budget(answer_tokens=limit + 4)).extract(document)
    assert result.data == json.loads(said)
    assert told == {pointer: field.value for pointer, field in result.fields.items()}
    assert result.metadata["plan"]["answers"] > 1
    assert "truncated" not in result.metadata


def test_random_weights_give_valid_results_with_evidence_for_everything(pdf: Callable[..., bytes]) -> None:
    for schema in (SCHEMA, LONG):
        result = Extractor(schema, VlmEngine(FOLDER, "reference"), budget=Budget(answer_tokens=120, follow_ups=2)).extract(pdf(LINES))
        assert Schema.load(schema).is_valid(result.data)
        assert all(field.reason or field.status == "found" for field in result.fields.values())
        assert result.metadata.get("truncated", False) == any("truncated" in warning for warning in result.warnings)
        json.dumps(result.to_dict())


def test_a_row_that_a_model_says_without_end_comes_hardly_more_often_than_on_the_page(pdf: Callable[..., bytes]) -> None:
    item = {"type": "object", "properties": {"item": {"type": "string"}, "price": {"type": "number"}}}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": item}}}
    said = json.dumps({"rows": [{"item": "Red pen", "price": 1.5}] * 90})
    result = Extractor(schema, VlmEngine(speaking(said))).extract(pdf(["Red pen 1.50", "Ink 2.50"]))
    assert 1 < len(result.data["rows"]) <= 6


def test_documents_in_several_threads_share_the_model(pdf: Callable[..., bytes]) -> None:
    extractor = Extractor(SCHEMA, VlmEngine(speaking(json.dumps(ANSWER))))
    document = pdf(LINES)
    results = list(side_by_side([partial(extractor.extract, document)] * 4, 4))
    assert [result.data for result in results] == [ANSWER] * 4
    assert len({str(sorted(result.fields.items())) for result in results}) == 1


def test_a_model_that_is_closed_is_not_blamed_for_its_answer(pdf: Callable[..., bytes]) -> None:
    loaded = speaking(json.dumps(ANSWER))
    forward: Any = loaded.model.forward
    steps = iter(range(100))

    def closing(step: Any) -> Any:
        if next(steps) == 2:
            threading.Thread(target=loaded.service.close).start()
            while not all(ticket.cancelled for ticket in loaded.service._active):
                time.sleep(0.001)
        return forward(step)

    loaded.model.forward = closing  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="closed before its answer was complete"):
        Extractor(SCHEMA, VlmEngine(loaded)).extract(pdf(LINES))
