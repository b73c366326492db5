import json
import os
from pathlib import Path

import pytest

from pagelift.schema import Schema

FOLDER = Path(os.environ.get("PAGELIFT_DEV_DATA") or Path(__file__).parents[3] / "shared/data/dev")
COLLECTIONS = sorted(FOLDER.glob("*/schema.json")) if FOLDER.is_dir() else []


@pytest.mark.skipif(not COLLECTIONS, reason="the development data is not here; PAGELIFT_DEV_DATA names its folder")
def test_collections_are_accepted_and_true_values_survive():
    for path in COLLECTIONS:
        schema = Schema.load(path, strict=True)
        for expected in sorted((path.parent / "expected").glob("*.json")):
            value = json.loads(expected.read_text(encoding="utf-8"))
            assert schema.errors(value) == [], expected
            done = schema.conform(value)
            assert done.dropped == (), expected
            assert covers(done.data, value), expected


def covers(data, value):
    """Whether `data` has everything that is in `value`."""
    if isinstance(value, dict):
        return all(name in data and covers(data[name], inner) for name, inner in value.items())
    if isinstance(value, list):
        return len(data) == len(value) and all(map(covers, data, value))
    return data == value
