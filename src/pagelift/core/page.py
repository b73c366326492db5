"""What is known about a page besides its picture: words, form fields, ruling lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pagelift.core.geometry import Box

WordSource = Literal["text", "ocr", "form"]
PageSource = Literal["text", "ocr", "none"]
FormFieldKind = Literal["text", "checkbox", "radio", "choice", "signature", "button"]


@dataclass(frozen=True, slots=True)
class Word:
    """A run of characters without white space.

    confidence: 1.0 for a text layer, the recogniser's score for OCR. line: index of the OCR text line that the
    word was cut from, None for a text layer. size_pt: font size or, for OCR, the line height, in points.
    """

    text: str
    box: Box
    source: WordSource = "text"
    confidence: float = 1.0
    bold: bool = False
    size_pt: float = 0.0
    line: int | None = None


@dataclass(frozen=True, slots=True)
class FormField:
    """An AcroForm widget on the page.

    name: the fully qualified field name. label: the alternate name (tooltip), "" if there is none.
    value: the text as filled in, the chosen option, or the export value of a check box. checked: for check boxes
    and radio buttons only.
    """

    name: str
    kind: FormFieldKind
    value: str
    box: Box
    label: str = ""
    checked: bool = False


@dataclass(frozen=True, slots=True)
class PageContent:
    """Everything on one page that is not a picture. Page numbers count from 1.

    words: in the order of the text layer or of the OCR, not sorted; values of form fields are among them with
    source "form". rules: ruling lines and the edges of drawn rectangles, as thin boxes.
    source: where the words come from. hidden_words: words of the text layer that nobody sees on the page
    (invisible, off the page, or without contrast); never used for extraction.
    """

    number: int
    width_pt: float
    height_pt: float
    words: tuple[Word, ...] = ()
    form_fields: tuple[FormField, ...] = ()
    rules: tuple[Box, ...] = ()
    source: PageSource = "text"
    hidden_words: tuple[Word, ...] = ()
    warnings: tuple[str, ...] = field(default=())
