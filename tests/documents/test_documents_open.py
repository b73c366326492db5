"""Opening: sources, kinds by content, limits, passwords, errors that name the remedy."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from hostile import encrypted_pdf
from making import encoded, paper, pdf, text

from pagelift.core import ConfigError, CorruptDocument, DocumentNotFound, LimitExceeded, Limits, PasswordRequired, UnsupportedDocument
from pagelift.documents import open_document

ONE_PAGE = pdf(text(72, 700, "Hello world"))


def words(source: object, **options: object) -> list[str]:
    with open_document(source, **options) as document:  # type: ignore[arg-type]
        return [w.text for w in document.page(1).content.words]


def test_every_kind_of_source_gives_the_same_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"  # the name says nothing about the type
    path.write_bytes(ONE_PAGE)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ONE_PAGE)))
    for source in (str(path), path, ONE_PAGE, io.BytesIO(ONE_PAGE), "-"):
        assert words(source) == ["Hello", "world"]


def test_relative_path_stays_valid_when_the_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pdf").write_bytes(ONE_PAGE)
    monkeypatch.chdir(tmp_path)
    document = open_document("a.pdf")
    monkeypatch.chdir("/")
    document.close()
    assert document.name == "a.pdf"
    assert [w.text for w in document.page(1).content.words] == ["Hello", "world"]


def test_kind_and_page_count() -> None:
    with open_document(ONE_PAGE) as document:
        assert (document.kind, document.page_count) == ("pdf", 1)
    with open_document(encoded(paper([]), "PNG")) as document:
        assert (document.kind, document.page_count) == ("image", 1)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UnsupportedDocument, match="standard input"):
            open_document(path)
    for path in (tmp_path / "missing.pdf", tmp_path / "nul\0byte"):
        with pytest.raises(DocumentNotFound):
            open_document(path)


def test_errors_name_the_document_and_the_remedy() -> None:
    with pytest.raises(CorruptDocument, match=r"my\.pdf: the file is empty"):
        open_document(b"", name="my.pdf")
    with pytest.raises(UnsupportedDocument, match=r"my\.pdf: .*convert"):
        open_document(b"hello", name="my.pdf")
    with pytest.raises(CorruptDocument, match=r"my\.pdf: .*save it again"):
        open_document(b"%PDF-1.7 hello", name="my.pdf")


def test_limits() -> None:
    with pytest.raises(LimitExceeded, match=r"limits\.file_bytes"):
        open_document(ONE_PAGE, limits=Limits(file_bytes=100))
    with pytest.raises(LimitExceeded, match=r"limits\.file_bytes"):
        open_document(io.BytesIO(ONE_PAGE), limits=Limits(file_bytes=100))
    two = ONE_PAGE.replace(b"/Kids [3 0 R] /Count 1", b"/Kids [3 0 R 3 0 R] /Count 2")
    with pytest.raises(LimitExceeded, match=r"2 pages, the limit is 1; raise limits\.pages"):
        open_document(two, limits=Limits(pages=1))
    with pytest.raises(LimitExceeded, match=r"limits\.page_pixels"):
        open_document(encoded(paper([], (200, 200)), "PNG"), limits=Limits(page_pixels=30_000))


def test_page_picture_stays_within_the_pixel_limit() -> None:
    with open_document(ONE_PAGE, limits=Limits(page_pixels=50_000)) as document:
        picture = document.image(1, 300)
        assert picture.width * picture.height <= 50_000
        assert picture.width / picture.height == pytest.approx(612 / 792, rel=0.02)
        for dpi in (0, -1, float("nan"), 1e9):
            with pytest.raises(ConfigError, match="dpi"):
                document.image(1, dpi)


def test_passwords() -> None:
    locked = encrypted_pdf("secret")
    with pytest.raises(PasswordRequired, match="give its password"):
        open_document(locked)
    with pytest.raises(PasswordRequired, match="wrong"):
        open_document(locked, password="guess")
    assert words(locked, password="secret") == ["Invoice", "4711"]


@pytest.mark.parametrize("source", [None, 5, io.StringIO("text")])
def test_what_is_no_source_is_an_error_of_the_caller(source: object) -> None:
    with pytest.raises(ConfigError, match="bytes"):
        open_document(source)  # type: ignore[arg-type]


def test_limits_are_numbers() -> None:
    with pytest.raises(ConfigError, match="limit pages is '5'"):
        Limits(pages="5")  # type: ignore[arg-type]


def test_wrong_arguments() -> None:
    with pytest.raises(ConfigError, match="ocr"):
        open_document(ONE_PAGE, ocr="sometimes")  # type: ignore[arg-type]
    with open_document(ONE_PAGE) as document:
        for number in (0, 2, -1):
            with pytest.raises(ConfigError, match="no page"):
                document.page(number)
        assert [p.number for p in document.pages()] == [1]
        assert [p.number for p in document.pages([1, 1])] == [1, 1]


def test_words_of_a_page_are_read_once_and_old_pages_are_let_go() -> None:
    many = ONE_PAGE.replace(b"/Kids [3 0 R] /Count 1", b"/Kids [" + b"3 0 R " * 100 + b"] /Count 100")
    with open_document(many) as document:
        assert document.page(1).content is document.page(1).content
        assert sum(len(p.content.words) for p in document.pages()) == 200
        assert len(document._pages) < 50
