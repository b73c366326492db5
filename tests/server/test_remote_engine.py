"""The remote engine with this server at the other end: the same results as without a server between."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pagelift import Extractor
from pagelift.extract import RemoteServer
from pagelift.extract.remote import RemoteEngine
from pagelift.extract.vlm import VlmEngine
from runtime.scripted import scripted
from server.running import DATA, LINES, SCHEMA, Running, running


@pytest.mark.parametrize("model", ["scripted", "layout"])
def test_extraction_by_a_server_of_our_own(pdf: Callable[..., bytes], model: str) -> None:
    from pagelift.extract import load_engine

    engines = [VlmEngine(scripted(json.dumps(DATA))), load_engine("layout")]
    with running(engines=engines) as server:
        engine = RemoteEngine(RemoteServer(api_base=f"{server.url}/v1", model=model, retries=0))
        result = Extractor(SCHEMA, engine).extract(pdf(LINES))
    assert result.data == DATA
    assert result.fields["/total"].raw == "1,234.50"
    assert result.engine == "remote"


def test_a_server_may_pass_extraction_on_to_another(layout_server: Running, invoice: bytes) -> None:
    engine = RemoteEngine(RemoteServer(api_base=f"{layout_server.url}/v1", model="layout", retries=0))
    with running(engines=[engine]) as server, server.http() as client:
        reply = client.post("/v1/extract", files={"document": invoice}, data={"schema": json.dumps(SCHEMA)})
    assert reply.json()["data"] == DATA
    assert reply.json()["engine"] == "remote"
