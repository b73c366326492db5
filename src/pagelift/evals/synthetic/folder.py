"""Writes documents as an evaluation folder (`evals.cases`)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path

from pagelift.core import Json
from pagelift.core.files import write_atomic
from pagelift.evals.synthetic.sample import Sample

SCAN_DPI = 150


def write_folder(folder: Path, samples: Iterable[Sample], pictures: bool = False) -> int:
    """Write documents with their schemas, true values and places; the collections are the kinds. Returns how many.

    folder: <kind>/documents, schemas, expected and evidence, with manifest.jsonl written last. pictures: the documents are
    scan-like pictures (JPEG, TIFF for several pages) instead of PDF files. Raises ConfigError when something cannot be written.
    """
    rows = []
    for sample in samples:
        content, ending = _pictures(sample) if pictures else (sample.pdf, "pdf")
        paths = {
            "document": f"{sample.kind}/documents/{sample.id}.{ending}",
            "schema": f"{sample.kind}/schemas/{sample.id}.json",
            "expected": f"{sample.kind}/expected/{sample.id}.json",
            "evidence": f"{sample.kind}/evidence/{sample.id}.json",
        }
        write_atomic(folder / paths["document"], content)
        write_atomic(folder / paths["schema"], _json(sample.schema))
        write_atomic(folder / paths["expected"], _json(sample.expected))
        places = {pointer: {"page": at.page, "box": at.box.as_list(), "raw": at.raw} for pointer, at in sample.evidence.items()}
        write_atomic(folder / paths["evidence"], _json(places))
        row = {"id": f"{sample.kind}/{sample.id}", "collection": sample.kind, **paths, "pages": len(sample.pages)}
        row |= {"language": sample.language, "layout": sample.layout, "issuer": sample.issuer}
        rows.append(row | ({"loose": sorted(sample.loose)} if sample.loose else {}))
    write_atomic(folder / "manifest.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _pictures(sample: Sample) -> tuple[bytes, str]:
    """All pages of a document as one picture file, and its ending."""
    first, *rest = [sample.picture(SCAN_DPI, degrade=0, page=page.number) for page in sample.pages]
    content = io.BytesIO()
    resolution = (SCAN_DPI, SCAN_DPI)
    if not rest:
        first.save(content, "jpeg", quality=85, dpi=resolution)
        return content.getvalue(), "jpg"
    first.save(content, "tiff", save_all=True, append_images=rest, compression="jpeg", dpi=resolution)
    return content.getvalue(), "tiff"
