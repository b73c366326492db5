"""`Extractor` around a scripted engine: order of work, guarantees of the result, errors."""

import asyncio
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic
import pytest

from extract.fake_server import FakeServer, completion
from extract.speaking import speaking
from pagelift import (
    Box,
    ConfigError,
    CorruptDocument,
    DocumentNotFound,
    EngineError,
    Extraction,
    Extractor,
    Field,
    LimitExceeded,
    Limits,
    SchemaError,
    UnfilledValue,
    extract,
)
from pagelift.core import Proposal
from pagelift.extract import ENGINES, Engine, ExtractOptions, ReadablePage, RemoteServer, load_engine
from pagelift.extract.vlm import VlmEngine
from pagelift.schema import Schema

SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "total": {"type": "number"},
        "paid": {"type": "boolean"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"a/b": {"type": "integer"}, "c~d": {"type": "string"}}}},
    },
}


NOTHING = json.dumps({"number": None, "total": None, "paid": None, "rows": []})


@pytest.fixture(params=sorted(ENGINES))
def any_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Every engine there is; those that ask a model with one that knows nothing."""
    if request.param == "vlm":
        yield VlmEngine(speaking(NOTHING))
    elif request.param == "remote":
        pytest.importorskip("openai")
        with FakeServer(lambda _: completion(NOTHING)) as server:
            yield load_engine("remote", RemoteServer(server.api_base))
    else:
        yield load_engine(request.param)


@dataclass
class Scripted:
    """An engine that answers what it was told to, and remembers what it saw."""

    data: Any = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    error: Exception | None = None
    seen: list[int] = field(default_factory=list)
    name: str = "scripted"

    def extract(self, pages: Iterable[ReadablePage], schema: Schema, options: ExtractOptions) -> Proposal:  # noqa: ARG002
        if self.error:
            raise self.error
        self.seen += [page.number for page in pages]
        return Proposal(self.data, self.fields, ("careful",), {"tokens": 3})


def found(pointer: str, value: Any, raw: str = "") -> Field:
    return Field(pointer, value, "found", raw or str(value), 1, Box(1, 2, 3, 4), (), 0.9)


def run(engine: Scripted, pdf: Callable[..., bytes], schema: Any = SCHEMA, **options: Any) -> Extraction:
    return Extractor(schema, engine, **options).extract(pdf(["Hello"]))


def test_result_is_complete_in_schema_order_and_says_where_it_comes_from(pdf: Callable[..., bytes]) -> None:
    engine = Scripted({"rows": [{"c~d": "x"}], "total": 5.5}, {"/total": found("/total", 5.5, "5,50"), "/rows/0/c~0d": found("", "x")})
    result = run(engine, pdf)
    assert result.data == {"number": None, "total": 5.5, "paid": None, "rows": [{"a/b": None, "c~d": "x"}]}
    assert list(result.data) == ["number", "total", "paid", "rows"]
    assert list(result.fields) == ["/number", "/total", "/paid", "/rows/0/a~1b", "/rows/0/c~0d"]
    assert all(pointer == evidence.pointer for pointer, evidence in result.fields.items())
    assert result.fields["/total"].raw == "5,50"
    assert result.fields["/number"].status == "not_attempted"
    assert result.fields["/number"].reason
    assert (result.engine, result.pages, result.warnings, result.metadata["tokens"]) == ("scripted", 1, ("careful",), 3)


def test_a_value_that_breaks_the_schema_becomes_null_with_the_reason_and_the_place(pdf: Callable[..., bytes]) -> None:
    result = run(Scripted({"total": "many"}, {"/total": found("/total", "many")}), pdf)
    assert result.data["total"] is None
    evidence = result.fields["/total"]
    assert (evidence.value, evidence.status, evidence.raw, evidence.page, evidence.confidence) == (None, "unreadable", "many", 1, 0.0)
    assert "many" in evidence.reason


def test_evidence_follows_rows_when_one_before_them_is_left_out(pdf: Callable[..., bytes]) -> None:
    schema = {"type": "object", "properties": {"codes": {"type": "array", "items": {"enum": ["A", "B"]}}}}
    fields = {f"/codes/{k}": found(f"/codes/{k}", value, f"code {value}") for k, value in enumerate("AXB")}
    result = run(Scripted({"codes": ["A", "X", "B"]}, fields), pdf, schema, nulls="declared")
    assert result.data == {"codes": ["A", "B"]}
    assert [f.raw for f in result.fields.values()] == ["code A", "code B"]


def test_evidence_follows_a_lone_value_into_an_array_and_out_of_one(pdf: Callable[..., bytes]) -> None:
    schema = {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}, "name": {"type": "string"}}}
    fields = {"/tags": found("/tags", "x", "X!"), "/name/0": found("/name/0", "n", "N!")}
    result = run(Scripted({"tags": "x", "name": ["n"]}, fields), pdf, schema)
    assert result.data == {"tags": ["x"], "name": "n"}
    assert (result.fields["/tags/0"].raw, result.fields["/name"].raw) == ("X!", "N!")


def test_empty_arrays_and_scalar_roots_have_evidence(pdf: Callable[..., bytes]) -> None:
    assert run(Scripted({"rows": []}), pdf).fields["/rows"].value == []
    result = run(Scripted("text", {"": found("", "text")}), pdf, {"type": "string"})
    assert (result.data, list(result.fields), result.fields[""].status) == ("text", [""], "found")


def test_declared_nulls_make_an_unfilled_required_value_an_error(pdf: Callable[..., bytes]) -> None:
    schema = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}
    with pytest.raises(UnfilledValue, match="number"):
        run(Scripted({}), pdf, schema, nulls="declared")


class Invoice(pydantic.BaseModel):
    number: str | None = None
    total: float


def test_pydantic_models_come_back_as_instances(pdf: Callable[..., bytes]) -> None:
    result = run(Scripted({"number": "7", "total": 2}), pdf, Invoice)
    assert result.model == Invoice(number="7", total=2.0)


def test_no_instance_but_a_warning_when_nulls_stand_where_the_model_has_none(pdf: Callable[..., bytes]) -> None:
    result = run(Scripted({"number": "7"}), pdf, Invoice)
    assert result.model is None
    assert result.data == {"number": "7", "total": None}
    assert any("Invoice" in warning and "total" in warning for warning in result.warnings)


def test_the_schema_is_refused_before_the_document_is_opened() -> None:
    with pytest.raises(SchemaError):
        extract("no/such/file.pdf", {"type": "no such type"})
    with pytest.raises(SchemaError):
        Extractor(engine=Scripted()).extract("no/such/file.pdf", {"type": "no such type"})


def test_pages_are_chosen_and_counted(pdf: Callable[..., bytes]) -> None:
    engine = Scripted()
    result = Extractor(SCHEMA, engine).extract(pdf(["a"], ["b"], ["c"]), pages="2-")
    assert (engine.seen, result.pages) == ([2, 3], 2)
    with pytest.raises(ConfigError, match="page 4"):
        Extractor(SCHEMA, engine).extract(pdf(["a"]), pages=[4])


def test_sources(pdf: Callable[..., bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(["a"]))
    extractor = Extractor(SCHEMA, Scripted())
    assert extractor.extract(path).source == str(path)
    assert extractor.extract(str(path)).source == str(path)
    assert extractor.extract(io.BytesIO(path.read_bytes())).pages == 1
    assert asyncio.run(extractor.aextract(path)).pages == 1


def test_errors_keep_their_class_and_unexpected_ones_become_engine_errors(pdf: Callable[..., bytes]) -> None:
    with pytest.raises(CorruptDocument):
        run(Scripted(error=CorruptDocument("bad page")), pdf)
    with pytest.raises(EngineError, match=r"scripted.*ZeroDivisionError: oh") as caught:
        run(Scripted(error=ZeroDivisionError("oh")), pdf)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(DocumentNotFound):
        Extractor(SCHEMA, Scripted()).extract("no/such/file.pdf")
    with pytest.raises(LimitExceeded):
        Extractor(SCHEMA, Scripted(), limits=Limits(pages=1)).extract(pdf(["a"], ["b"]))


def test_wrong_options_are_refused_at_once() -> None:
    with pytest.raises(EngineError, match="there is no engine 'magic'; choose auto, layout"):
        Extractor(SCHEMA, "magic")
    with pytest.raises(ConfigError, match="ocr is 'maybe'"):
        Extractor(SCHEMA, ocr="maybe")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="nulls is 'none'"):
        Extractor(SCHEMA, nulls="none")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="there is no schema"):
        Extractor(engine=Scripted()).extract(b"")


def test_engines_of_the_registry_have_the_protocol_and_their_name(any_engine: Engine) -> None:
    assert isinstance(any_engine, Engine)
    assert any_engine.name in ENGINES
    assert load_engine("auto").name == "layout"


@pytest.mark.parametrize("lines", [[], ["Invoice number: A-17", "Total: 1,234.50 EUR"]])
def test_every_engine_gives_valid_results(any_engine: Engine, lines: list[str], pdf: Callable[..., bytes]) -> None:
    result = Extractor(SCHEMA, any_engine).extract(pdf(lines, lines), pages="2")
    assert (result.engine, result.pages) == (any_engine.name, 1)
    assert Schema.load(SCHEMA).errors(result.data) == []
    assert set(result.fields) >= {"/number", "/total", "/paid"}
    assert all(0 <= field.confidence <= 1 for field in result.fields.values())
    assert all(field.reason for field in result.fields.values() if field.value in (None, []))
    json.dumps(result.to_dict())


def test_every_engine_tells_of_pages_that_cannot_be_read(any_engine: Engine) -> None:
    class Broken:
        number = 1

        @property
        def content(self) -> Any:
            raise CorruptDocument("page 1 is damaged")

    with pytest.raises(CorruptDocument, match="damaged"):
        any_engine.extract([Broken()], Schema.load(SCHEMA), ExtractOptions())  # type: ignore[list-item]


def test_a_closed_result_can_still_be_drawn(pdf: Callable[..., bytes], tmp_path: Path) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf(["Total 5"], ["nothing"]))
    result = Extractor(SCHEMA, Scripted({"total": 5}, {"/total": found("/total", 5)})).extract(path)
    (picture,) = result.annotate(tmp_path / "drawn")
    assert picture.mode == "RGB"
    assert [p.name for p in (tmp_path / "drawn").iterdir()] == ["paper-page-1.png"]


def test_json_text_keeps_boxes_on_one_line_and_means_the_same(pdf: Callable[..., bytes]) -> None:
    result = run(Scripted({"total": 5, "number": "[\n 1,\n 2\n]"}, {"/total": found("/total", 5)}), pdf)
    assert json.loads(result.to_json()) == result.to_dict()
    assert '"box": [1, 2, 3, 4]' in result.to_json()
    assert "evidence" not in json.loads(result.to_json(evidence=False))
