"""Reading pictures: when OCR runs, where its words are, and how they join a text layer."""

from __future__ import annotations

import pytest
from making import encoded, paper, pdf, scan, stream, text
from PIL import Image

from pagelift.core import DocumentTimeout, Limits, PageContent, Word
from pagelift.documents import open_document
from pagelift.documents.ocr import _split

LINES = ["Invoice number 4711", "Date 12 March 2024", "Total due 119.00 EUR"]
WORDS = " ".join(LINES).split()


def texts(words: tuple[Word, ...]) -> list[str]:
    return [w.text for w in words]


def dark(picture: Image.Image, word: Word, dpi: float) -> bool:
    box = [v * dpi / 72 for v in (word.box.x0, word.box.top, word.box.x1, word.box.bottom)]
    return picture.convert("L").crop(tuple(map(int, box))).getextrema()[0] < 100  # type: ignore[arg-type]


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_picture_in_any_direction(turns: int) -> None:
    image = paper(LINES, (1000, 320)).rotate(90 * turns, expand=True)
    page = open_document(encoded(image, "PNG")).page(1)
    content = page.content
    assert content.source == "ocr"
    assert texts(content.words) == WORDS
    assert all(w.source == "ocr" and w.confidence > 0.8 for w in content.words)
    assert [w.line for w in content.words] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    picture = page.image(100)
    assert all(dark(picture, w, 100) for w in content.words)
    first, second = content.words[0].box, content.words[1].box
    step = (second.center_x - first.center_x, second.center_y - first.center_y)
    assert [(step[0] > 20), (step[1] < -20), (step[0] < -20), (step[1] > 20)].index(True) == turns


def content_of(document: bytes, **options: object) -> PageContent:
    return open_document(document, **options).page(1).content  # type: ignore[arg-type]


def test_modes() -> None:
    born_digital = pdf(text(72, 700, "Plain text"))
    assert content_of(born_digital).source == "text"
    assert content_of(born_digital, ocr="always").source == "ocr"
    assert texts(content_of(born_digital, ocr="always").words) == ["Plain", "text"]
    scanned = scan(paper(LINES))
    assert content_of(scanned, ocr="never").source == "none"
    assert texts(content_of(scanned).words) == WORDS
    blank = content_of(pdf("0 0 m 600 700 l S"))
    assert (blank.source, blank.words) == ("none", ())


def test_scan_with_a_printed_footer_has_both() -> None:
    page = content_of(scan(paper(LINES, (1000, 1300)), text(72, 30, "Archive 7")))
    assert texts(page.words) == ["Archive", "7", *WORDS]
    assert [w.source for w in page.words] == ["text"] * 2 + ["ocr"] * len(WORDS)


def test_invisible_layer_over_a_scan_is_used_and_reported() -> None:
    layer = "".join(text(72, 700 - 20 * i, "A line that the scanner read", more="3 Tr") for i in range(12))
    page = content_of(scan(paper(LINES, (1000, 1300)), layer))
    assert page.source == "text"
    assert texts(page.words)[:3] == ["A", "line", "that"]
    assert "invisible text layer" in page.warnings[0]


def test_garbage_layer_is_replaced() -> None:
    mapping = "1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <20> <7E> <E020> endbfrange"
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 7 0 R >>"
    cmap = stream(f"/CIDInit /ProcSet findresource begin begincmap /CMapName /X def {mapping} endcmap end")
    content = pdf("BT /F2 24 Tf 72 700 Td (Total 119.00) Tj ET", resources="/Font << /F2 6 0 R >>", extra={6: font, 7: cmap})
    page = content_of(content)
    assert page.source == "ocr"
    assert texts(page.words) == ["Total", "119.00"]


def test_words_in_a_picture_of_a_born_digital_page_are_read_on_request() -> None:
    logo = paper(["Acme Trading Ltd"], (700, 130), 60)
    body = "".join(text(72, 600 - 14 * i, f"Line {i} of the letter says nothing new") for i in range(20))
    document = open_document(scan(logo, body, area="300 0 0 56 72 700"))
    page = document.page(1)
    assert page.content.source == "text"
    assert "Acme" not in texts(page.content.words)
    assert texts(page.picture_words) == ["Acme", "Trading", "Ltd"]
    assert all(72 <= w.box.x0 < w.box.x1 <= 372 and 36 <= w.box.top < w.box.bottom <= 92 for w in page.picture_words)
    (beyond,) = (w for w in open_document(scan(logo, body, area="400 0 0 56 -20 700")).page(1).picture_words if w.text == "Trading")
    assert 100 < beyond.box.x0 < beyond.box.x1 < 260  # the picture begins left of the page
    assert open_document(scan(logo, body, area="300 0 0 56 72 700"), ocr="never").page(1).picture_words == ()


def test_ocr_has_its_own_time_limit() -> None:
    with pytest.raises(DocumentTimeout, match=r"limits\.ocr_seconds"):
        content_of(encoded(paper(LINES), "PNG"), limits=Limits(ocr_seconds=0.01))
    assert texts(content_of(encoded(paper(LINES), "PNG")).words) == WORDS


def test_split_of_a_line_by_spaces_and_by_wide_gaps() -> None:
    assert _split("ab c", [2, 4, 8], 10) == [("ab", 0.1, 0.6), ("c", 0.7, 1.0)]
    assert [w for w, _, _ in _split("TOTAL9.00", [0, 2, 4, 6, 8, 40, 42, 44, 46], 50)] == ["TOTAL", "9.00"]
    assert [w for w, _, _ in _split("WIDE", [0, 6, 12, 18], 24)] == ["WIDE"]
    assert _split("ab", [1], 10) == [("ab", 0.0, 1.0)]
