"""/v1/extract and /v1/schemas over HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pagelift import extract
from pagelift.server.settings import ServerSettings
from server.running import DATA, SCHEMA, Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(ServerSettings(schema_folder=tmp_path_factory.mktemp("schemas"))) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def post(client: httpx.Client, content: bytes, **fields: Any) -> httpx.Response:
    given = {"schema": json.dumps(SCHEMA)} | fields
    return client.post("/v1/extract", files={"document": ("invoice.pdf", content)}, data=given)


def without_seconds(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "metadata": None}


def test_a_form_and_json_give_what_the_library_gives(client: httpx.Client, invoice: bytes) -> None:
    offline = extract(invoice, SCHEMA, "layout").to_dict() | {"source": "invoice.pdf"}
    document = base64.b64encode(invoice).decode()
    by_form = post(client, invoice)
    by_json = client.post("/v1/extract", json={"document": document, "filename": "invoice.pdf", "schema": SCHEMA})
    assert by_form.status_code == by_json.status_code == 200
    assert without_seconds(by_form.json()) == without_seconds(by_json.json()) == without_seconds(json.loads(json.dumps(offline)))
    assert by_form.json()["data"] == DATA
    assert by_form.json()["evidence"]["/total"]["raw"] == "1,234.50"


def test_the_schema_may_be_a_file_of_the_form(client: httpx.Client, invoice: bytes) -> None:
    files = {"document": ("invoice.pdf", invoice), "schema": ("schema.json", json.dumps(SCHEMA))}
    assert client.post("/v1/extract", files=files).json()["data"] == DATA


def test_options_do_what_they_say(client: httpx.Client, pdf: Any) -> None:
    content = pdf(["Invoice number: A-17"], ["Total: 1,234.50 EUR"])
    assert post(client, content, pages="1").json()["data"] == {"invoice_number": "A-17", "total": None}
    result = post(client, content, evidence="false", model="layout").json()
    assert "evidence" not in result
    assert (result["pages"], result["engine"]) == (2, "layout")
    refused = post(client, content, pages="3")
    assert refused.status_code == 400
    assert "pages 1 to 2" in refused.json()["error"]["message"]


def test_a_stream_gives_pages_fields_and_the_result(client: httpx.Client, pdf: Any) -> None:
    content = pdf(["Invoice number: A-17"], ["Total: 1,234.50 EUR"])
    reply = post(client, content, stream="true")
    assert reply.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert [line["type"] for line in lines] == ["pages"] * 3 + ["field"] * 2 + ["result"]
    assert [line["done"] for line in lines[:3]] == [0, 1, 2]
    assert lines[3]["pointer"] == "/invoice_number"
    assert without_seconds(lines[-1])["data"] == DATA
    assert post(client, b"no document", stream="true").status_code == 415


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"schema": "nothing"}, 404, "schema"),
        ({"schema": "/etc/passwd"}, 404, "schema"),
        ({"schema": "{"}, 400, "schema"),
        ({"schema": '{"type": 5}'}, 400, "schema"),
        ({"model": "other"}, 404, "model"),
        ({"ocr": "maybe"}, 400, "ocr"),
        ({"stream": "perhaps"}, 400, "stream"),
        ({"color": "red"}, 400, "color"),
    ],
)
def test_wrong_options_are_named(client: httpx.Client, invoice: bytes, fields: dict[str, str], status: int, param: str) -> None:
    reply = post(client, invoice, **fields)
    assert reply.status_code == status, reply.text
    assert reply.json()["error"]["param"] == param


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"document": "x", "schema": {}}',
        b'{"document": 5, "schema": {}}',
        b'{"document": "\\ud800", "schema": {}}',
        b'{"schema": {}}',
        b'{"document": "QQ==", "schema": {"a": NaN}}',
        b"\xff\xfe",
    ],
)
def test_bad_json_is_a_400(client: httpx.Client, body: bytes) -> None:
    reply = client.post("/v1/extract", content=body, headers={"content-type": "application/json"})
    assert reply.status_code in (400, 415), reply.text
    assert reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"x"),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="document"\r\n\r\nabc'),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="document"\r\n\r\nabc\r\n--b--'),
        ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data\r\n\r\nabc\r\n--b--"),
        ("multipart/form-data; boundary=" + "b" * 5000, b"x"),
        ("text/plain", b"x"),
        ("application/x-www-form-urlencoded", b"document=x&schema={}"),
    ],
)
def test_bad_forms_are_a_400(client: httpx.Client, kind: str, body: bytes) -> None:
    reply = client.post("/v1/extract", content=body, headers={"content-type": kind})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["message"]


def test_a_document_that_breaks_off_says_so(client: httpx.Client, invoice: bytes) -> None:
    reply = post(client, invoice[:200])
    assert reply.status_code == 422
    assert reply.json()["error"]["code"] == "document_error"


def test_the_schema_library(client: httpx.Client, invoice: bytes, server: Running) -> None:
    saved = client.put("/v1/schemas/invoice", json=SCHEMA)
    assert saved.status_code == 201
    assert saved.json()["report"]["accepted"] is True
    assert client.put("/v1/schemas/invoice", json=SCHEMA).status_code == 200
    assert client.get("/v1/schemas").json()["data"] == [{"name": "invoice"}]
    assert client.get("/v1/schemas/invoice").json() == SCHEMA
    assert server.service.settings.schema_folder
    assert (server.service.settings.schema_folder / "invoice.json").is_file()
    assert post(client, invoice, schema="invoice").json()["data"] == DATA
    assert client.delete("/v1/schemas/invoice").status_code == 204
    for request in (client.get, client.delete):
        assert request("/v1/schemas/invoice").status_code == 404
    assert client.put("/v1/schemas/.hidden", json=SCHEMA).status_code == 400
    assert client.put("/v1/schemas/bad", json={"type": "nonsense"}).status_code == 400
    assert client.put("/v1/schemas/bad", json=[1]).status_code == 400
    assert not list(Path(server.service.settings.schema_folder).iterdir())


def test_the_page_of_the_api_has_every_path_and_no_foreign_error(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()
    assert {"/v1/chat/completions", "/v1/extract", "/v1/schemas/{name}", "/health"} <= described["paths"].keys()
    text = json.dumps(described)
    assert "HTTPValidationError" not in text
    assert "multipart/form-data" in described["paths"]["/v1/extract"]["post"]["requestBody"]["content"]
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "://" not in page.text  # nothing from elsewhere
    assert "'none'" in page.headers["content-security-policy"]
