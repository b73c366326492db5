"""PDF pages: coordinates, words, fields, rules, hidden words. Pictures are the independent witness for boxes."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from making import assemble, encoded, pdf, stream, text
from PIL import Image, ImageChops
from reportlab.pdfgen.canvas import Canvas

from pagelift.core import Box, PageContent
from pagelift.documents import Page, open_document

DPI = 144


def page_of(content: bytes) -> Page:
    return open_document(content, ocr="never").page(1)


def words_of(content: bytes) -> list[str]:
    return [w.text for w in page_of(content).content.words]


def ink(picture: Image.Image) -> Box:
    """The box around everything that is not white, in points."""
    bounds = ImageChops.difference(picture, Image.new("RGB", picture.size, "white")).getbbox()
    assert bounds is not None
    return Box(*(v * 72 / DPI for v in bounds))


def assert_around(box: Box, inner: Box, slack_pt: float = 6) -> None:
    for edge, sign in (("x0", 1), ("top", 1), ("x1", -1), ("bottom", -1)):
        distance = sign * (getattr(inner, edge) - getattr(box, edge))
        assert -1.5 <= distance <= slack_pt, (edge, box, inner)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("crop", ["", "/CropBox [50 100 400 700]"])
@pytest.mark.parametrize("matrix", ["1 0 0 1", "0 1 -1 0", "-1 0 0 -1", "0 -1 1 0"])
def test_word_box_lies_on_its_ink(rotation: int, crop: str, matrix: str) -> None:
    content = f"BT /F1 20 Tf {matrix} 200 500 Tm (Hg12) Tj ET"
    page = page_of(pdf(content, f"/MediaBox [0 0 612 792] /Rotate {rotation} {crop}"))
    (word,) = page.content.words
    assert word.text == "Hg12"
    assert word.size_pt == pytest.approx(20)
    width, height = (350, 600) if crop else (612, 792)
    assert (page.width_pt, page.height_pt) == ((height, width) if rotation % 180 else (width, height))
    assert (page.content.width_pt, page.content.height_pt) == (page.width_pt, page.height_pt)
    picture = page.image(DPI)
    assert picture.size == (page.width_pt * 2, page.height_pt * 2)
    assert_around(word.box, ink(picture))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("BT /F1 12 Tf 72 700 Td (Total due) Tj 100 0 Td (119.00) Tj ET", ["Total", "due", "119.00"]),
        ("BT /F1 12 Tf 72 700 Td [(To) 20 (ta) -30 (l) -600 (due)] TJ ET", ["Total", "due"]),  # a gap instead of a space
        ("BT /F1 12 Tf 6 Tc 72 700 Td (INVOICE) Tj ET", ["INVOICE"]),  # letter-spaced
        ("BT /F1 12 Tf 72 700 Td (I N V O I C E) Tj ET", ["INVOICE"]),
        ("BT /F1 1 Tf 12 0 0 12 72 700 Tm (Scaled) Tj ET", ["Scaled"]),
        ("BT /F1 12 Tf 72 700 Td (a\xa0b) Tj ET", ["a", "b"]),
        ("BT /F1 12 Tf 72 700 Td (Gr\xf6\xdfe) Tj ET", ["Größe"]),
        ("BT /F1 12 Tf 72 700 Td (Total) Tj 0.3 0 Td (Total) Tj ET", ["Total"]),  # bold by double printing
        ("BT /F1 12 Tf 72 700 Td (A) Tj 150 0 Td (B) Tj 150 0 Td (C) Tj 100 0 Td (D) Tj ET", ["A", "B", "C", "D"]),
        ("BT /F1 12 Tf 72 700 Td (1 2 3 4 5) Tj 0 -14 Td (6) Tj ET", ["12345", "6"]),
        ("BT /F1 12 Tf 0.7 0.7 -0.7 0.7 100 300 Tm (Draft) Tj ET", ["Draft"]),  # a diagonal watermark
        ("", []),
    ],
)
def test_words(content: str, expected: list[str]) -> None:
    assert words_of(pdf(content)) == expected


def test_a_hyphen_at_the_end_of_a_line_is_kept() -> None:
    lines = text(72, 700, "an extra-") + text(72, 684, "ordinary bill")
    assert words_of(pdf(lines)) == ["an", "extra-", "ordinary", "bill"]


def test_mapped_characters() -> None:
    """A ligature is spelled out, a combining accent composed, a character beyond the 16-bit plane kept whole."""
    characters = "<41> <FB01> <42> <0065> <43> <0301> <44> <D83DDE00> <45> <00660066>"
    mapping = f"1 begincodespacerange <00> <FF> endcodespacerange 5 beginbfchar {characters} endbfchar"
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 7 0 R >>"
    cmap = f"/CIDInit /ProcSet findresource begin begincmap /CMapName /X def {mapping} endcmap end"
    content = "BT /F2 12 Tf 72 700 Td (A) Tj 60 0 Td (BC) Tj 60 0 Td (D) Tj 60 0 Td (E) Tj ET"
    assert words_of(pdf(content, resources="/Font << /F2 6 0 R >>", extra={6: font, 7: stream(cmap)})) == ["fi", "é", "\U0001f600", "ff"]


def test_bold_by_font_and_by_stroke() -> None:
    bold = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>"
    content = text(72, 700, "plain") + text(72, 680, "stroked", more="2 Tr") + "BT /F2 12 Tf 72 600 Td (bold) Tj ET"
    page = page_of(
        pdf(content, resources="/Font << /F1 5 0 R /F2 6 0 R >>", extra={6: bold}).replace(b"/Font << /F1 5 0 R >> /Font", b"/Font")
    )
    assert {w.text: w.bold for w in page.content.words} == {"plain": False, "stroked": True, "bold": True}


def rounded(boxes: Iterable[Box]) -> set[tuple[int, ...]]:
    return {tuple(round(v) for v in b.as_list()) for b in boxes}


def test_rules_of_lines_rectangles_and_nested_forms() -> None:
    form = stream("0 0 m 100 0 l S", "/Type /XObject /Subtype /Form /BBox [-5 -5 200 200] /Matrix [1 0 0 1 300 92]")
    content = "72 692 m 172 692 l S\n72 600 100 50 re S\n300 500 200 0.5 re f\n0 0 m 300 300 l S\n1 g 10 10 300 300 re f\n/Fm1 Do"
    rules = rounded(page_of(pdf(content, resources="/XObject << /Fm1 6 0 R >>", extra={6: form})).content.rules)
    edges = {(72, 142, 172, 142), (72, 192, 172, 192), (72, 142, 72, 192), (172, 142, 172, 192)}
    nested, thin, line = (300, 700, 400, 700), (300, 292, 500, 292), (72, 100, 172, 100)
    near = {(a, b + db, c, d + dd) for a, b, c, d in (nested, thin, line) for db in (-1, 0, 1) for dd in (-1, 0, 1)}
    near |= {(a - 1, b, c + 1, d) for a, b, c, d in near}
    assert edges <= rules
    assert len(rules) == 7
    assert len(rules & near) == 3


HIDDEN = {
    "invisible": text(72, 600, "secret", more="3 Tr"),
    "off-page": text(-500, 600, "secret") + text(5000, 600, "secret"),
    "white": "1 g " + text(72, 600, "secret") + "0 g",
    "tiny": text(72, 600, "secret", size=0.5),
    "same-color": "0 0 1 rg 50 580 200 50 re f " + text(72, 600, "secret") + "0 g",
    "covered": text(72, 600, "secret") + "0 g 50 580 200 50 re f",
    "transparent": "/G1 gs " + text(72, 600, "secret"),
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_hidden_words_are_reported_and_not_used(kind: str) -> None:
    content = pdf(text(72, 700, "visible") + HIDDEN[kind], resources="/ExtGState << /G1 << /ca 0 /CA 0 >> >>")
    page = page_of(content).content
    assert [w.text for w in page.words] == ["visible"]
    assert {w.text for w in page.hidden_words} == {"secret"}
    assert len(page.warnings) == 1


VISIBLE = {
    "white-on-dark": "0.1 g 50 580 200 50 re f 1 g " + text(72, 600, "shown"),
    "on-pale-ground": "0.9 g 50 580 200 50 re f 0 g " + text(72, 600, "shown"),
    "highlighted": text(72, 600, "shown") + "/G1 gs 1 1 0 rg 50 580 200 50 re f",
    "pale-gray": "0.8 g " + text(72, 600, "shown"),
    "clipped-fill": text(72, 600, "shown") + "q 50 50 100 100 re W n 0 g 0 0 612 792 re f Q",
    "very-pale-and-small": "0.85 g " + text(72, 600, "shown", size=5),
    "framed": text(72, 600, "shown") + "50 580 200 50 re S",
}


@pytest.mark.parametrize("kind", VISIBLE)
def test_visible_words_are_not_taken_for_hidden(kind: str) -> None:
    content = pdf(VISIBLE[kind], resources="/ExtGState << /G1 << /BM /Multiply /ca 0.5 >> >>")
    page = page_of(content).content
    assert [w.text for w in page.words] == ["shown"]
    assert not page.hidden_words


def test_a_picture_hides_what_it_covers_but_only_inside_its_clip() -> None:
    jpeg = encoded(Image.new("RGB", (40, 40), "navy"), "JPEG")
    entries = "/Subtype /Image /Width 40 /Height 40 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode"
    words = text(72, 80, "under") + text(72, 600, "shown")
    drawn = words + "q 50 50 200 100 re W n 612 0 0 792 0 0 cm /Im1 Do Q"
    page = page_of(pdf(drawn, resources="/XObject << /Im1 6 0 R >>", extra={6: stream(jpeg, entries)})).content
    assert [w.text for w in page.words] == ["shown"]
    assert [w.text for w in page.hidden_words] == ["under"]


def filled_form() -> PageContent:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792))
    canvas.drawString(72, 740, "Name")
    form = canvas.acroForm
    form.textfield(name="name", tooltip="Full name", value="Ann Example", x=150, y=730, width=200, height=20)
    form.textfield(name="blank", x=150, y=700, width=200, height=20)
    form.checkbox(name="agreed", tooltip="I agree", checked=True, x=150, y=660)
    form.checkbox(name="other", checked=False, x=150, y=630)
    form.radio(name="kind", value="a", selected=False, x=150, y=600)
    form.radio(name="kind", value="b", selected=True, x=200, y=600)
    form.choice(name="country", value="NL", options=[("Germany", "DE"), ("Netherlands", "NL")], x=150, y=560, width=200, height=20)
    canvas.save()
    return page_of(out.getvalue()).content


def test_form_fields() -> None:
    page = filled_form()
    fields = {(f.name, f.value): f for f in page.form_fields}
    assert [f.kind for f in page.form_fields] == ["text", "text", "checkbox", "checkbox", "radio", "radio", "choice"]
    name = fields["name", "Ann Example"]
    assert name.label == "Full name"
    assert name.box.as_list(0) == [150, 42, 350, 62]
    assert fields["blank", ""].kind == "text"
    assert [f.checked for f in page.form_fields if f.kind == "checkbox"] == [True, False]
    assert {f.value: f.checked for f in page.form_fields if f.kind == "radio"} == {"a": False, "b": True}
    assert ("country", "Netherlands") in fields


def test_values_of_form_fields_are_words_once() -> None:
    page = filled_form()
    assert [w.text for w in page.words if w.source == "text"] == ["Name"]
    assert [w.text for w in page.words if w.source == "form"] == ["Ann", "Example", "Netherlands"]
    box = next(f.box for f in page.form_fields if f.name == "name")
    for word in page.words[1:3]:
        assert box.x0 <= word.box.x0 < word.box.x1 <= box.x1
        assert box.top - 2 <= word.box.center_y <= box.bottom + 2


def test_value_without_appearance_is_still_a_word_and_content_can_be_read_twice() -> None:
    fields = {
        1: "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] >> >>",
        2: "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [6 0 R] >>",
        6: "<< /Type /Annot /Subtype /Widget /FT /Tx /T (iban) /V (DE12 3456) /Rect [100 500 300 520] /P 3 0 R >>",
    }
    document = open_document(assemble(fields), ocr="never")
    for _ in range(2):
        page = document.page(1).content
        assert [(w.text, w.source) for w in page.words] == [("DE12", "form"), ("3456", "form")]
        assert [f.value for f in page.form_fields] == ["DE12 3456"]
        assert all(100 <= w.box.x0 < w.box.x1 <= 300 and 272 <= w.box.top < w.box.bottom <= 292 for w in page.words)


def test_filled_field_is_drawn_in_the_picture() -> None:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792))
    canvas.acroForm.textfield(name="a", value="XXXX", x=100, y=600, width=200, height=30, borderWidth=0, fillColor=None)
    canvas.showPage()
    canvas.save()
    assert ink(page_of(out.getvalue()).image(DPI)).x0 > 95


def test_coordinates_that_are_no_numbers_are_left_out() -> None:
    huge = "9" * 60
    content = f"{text(72, 700, 'fine')} q {huge} 0 0 {huge} 0 0 cm BT /F1 {huge} Tf 1 1 Td (x) Tj ET 0 0 m 10 0 l S Q"
    page = page_of(pdf(content)).content
    assert [w.text for w in page.words] == ["fine"]
    boxes = [*page.rules, *(w.box for w in page.hidden_words)]
    assert all(abs(v) < 1e13 for b in boxes for v in b.as_list())
