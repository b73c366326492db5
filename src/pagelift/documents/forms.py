"""AcroForm fields of a PDF page, and which words of the flattened page are their values."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pypdfium2.raw as pdfium

from pagelift.documents.frame import Frame, is_finite

KINDS = {
    pdfium.FPDF_FORMFIELD_PUSHBUTTON: "button",
    pdfium.FPDF_FORMFIELD_CHECKBOX: "checkbox",
    pdfium.FPDF_FORMFIELD_RADIOBUTTON: "radio",
    pdfium.FPDF_FORMFIELD_COMBOBOX: "choice",
    pdfium.FPDF_FORMFIELD_LISTBOX: "choice",
    pdfium.FPDF_FORMFIELD_TEXTFIELD: "text",
    pdfium.FPDF_FORMFIELD_SIGNATURE: "signature",
}
TEXT_KINDS = ("text", "choice")
PRINTED_ANNOTATIONS = (pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_STAMP)
MAX_ANNOTATIONS = 5_000
MAX_OPTIONS = 500

PackedWord = list[Any]
"""Text, x0, top, x1, bottom, source, confidence, bold, size_pt, line: the fields of core.Word."""


@dataclass(frozen=True, slots=True)
class Widget:
    """A form field as core.FormField has it. corners: x0, top, x1, bottom in page points."""

    name: str
    kind: str
    value: str
    corners: list[float]
    label: str
    checked: bool

    def pack(self) -> list[Any]:
        return [self.name, self.kind, self.value, self.corners, self.label, self.checked]


def read_widgets(page: Any, form: Any, frame: Frame) -> tuple[list[Widget], bool]:
    """The form fields of a loaded page, and whether it has annotations whose text only flattening brings into the text layer."""
    widgets: list[Widget] = []
    printed = False
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        subtype = pdfium.FPDFAnnot_GetSubtype(annotation)
        if subtype == pdfium.FPDF_ANNOT_WIDGET and form:
            widget = _read_widget(annotation, form, frame)
            if widget is not None:
                widgets.append(widget)
                printed = printed or (widget.kind in TEXT_KINDS and bool(widget.value.strip()))
        elif subtype in PRINTED_ANNOTATIONS:
            printed = True
        pdfium.FPDFPage_CloseAnnot(annotation)
    return widgets, printed


def _read_widget(annotation: Any, form: Any, frame: Frame) -> Widget | None:
    kind = KINDS.get(pdfium.FPDFAnnot_GetFormFieldType(form, annotation))
    rectangle = pdfium.FS_RECTF()
    if kind is None or not pdfium.FPDFAnnot_GetRect(annotation, rectangle):
        return None
    edges = (rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
    if not is_finite(edges):
        return None

    def text(function: Callable[..., int]) -> str:
        return _string(partial(function, form, annotation))

    checkable = kind in ("checkbox", "radio")
    value = text(pdfium.FPDFAnnot_GetFormFieldExportValue if checkable else pdfium.FPDFAnnot_GetFormFieldValue)
    if kind == "choice":
        value = ", ".join(_selected_options(annotation, form)) or value
    return Widget(
        text(pdfium.FPDFAnnot_GetFormFieldName),
        kind,
        value,
        frame.show(edges),
        text(pdfium.FPDFAnnot_GetFormFieldAlternateName),
        checkable and bool(pdfium.FPDFAnnot_IsChecked(form, annotation)),
    )


def _selected_options(annotation: Any, form: Any) -> Iterator[str]:
    for index in range(min(pdfium.FPDFAnnot_GetOptionCount(form, annotation), MAX_OPTIONS)):
        if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, index):
            yield _string(partial(pdfium.FPDFAnnot_GetOptionLabel, form, annotation, index))


def _string(read: Callable[[Any, int], int]) -> str:
    size = read(None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")


def mark_values(words: list[PackedWord], widgets: list[Widget]) -> list[PackedWord]:
    """`words` of the flattened page with the values of form fields marked as such, and added where the page does not draw them.

    A value whose characters stand apart (one cell each) becomes the words of the value again.
    """
    filled = [w for w in widgets if w.kind in TEXT_KINDS and w.value.split()]
    taken: set[int] = set()
    values: list[PackedWord] = []
    for widget in filled:
        tokens = widget.value.split()
        letters = "".join(tokens)
        inside = [i for i, w in enumerate(words) if i not in taken and _is_inside(w, widget.corners) and w[0] in letters]
        drawn = [words[i] for i in inside]
        if [w[0] for w in drawn] == tokens:
            found = [[*w[:5], "form", *w[6:]] for w in drawn]
        elif "".join(w[0] for w in drawn) == letters:
            found = _regroup(tokens, drawn)
        else:
            found = _lay_out(tokens, widget.corners)
        taken.update(inside)
        values.extend(found)
    return [w for i, w in enumerate(words) if i not in taken] + values


def _is_inside(word: PackedWord, corners: list[float]) -> bool:
    x0, top, x1, bottom = corners
    return bool(x0 - 2 <= (word[1] + word[3]) / 2 <= x1 + 2 and top - 2 <= (word[2] + word[4]) / 2 <= bottom + 2)


def _regroup(tokens: list[str], drawn: list[PackedWord]) -> list[PackedWord]:
    """One word per token, around the drawn words that its characters come from."""
    owners = [w for w in drawn for _ in w[0]]
    words, position = [], 0
    for token in tokens:
        parts = owners[position : position + len(token)]
        position += len(token)
        corners = [min(w[1] for w in parts), min(w[2] for w in parts), max(w[3] for w in parts), max(w[4] for w in parts)]
        words.append([token, *corners, "form", 1.0, parts[0][7], parts[0][8], None])
    return words


def _lay_out(tokens: list[str], corners: list[float]) -> list[PackedWord]:
    """Words along the first line of a field whose appearance has no usable text."""
    x0, top, x1, bottom = corners
    letters = max(len(" ".join(tokens)), 1)
    size_pt = min(bottom - top, 12.0)
    step = min((x1 - x0) / letters, size_pt * 0.55)
    words, position = [], 0
    for token in tokens:
        left = x0 + position * step
        box = [round(v, 2) for v in (left, top, left + len(token) * step, bottom)]
        words.append([token, *box, "form", 1.0, False, size_pt, None])
        position += len(token) + 1
    return words
