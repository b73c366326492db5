"""Image files: formats, modes, orientation, frames, resolution, size limits."""

from __future__ import annotations

import io

import pytest
from making import encoded
from PIL import Image

from pagelift.core import CorruptDocument, LimitExceeded, Limits
from pagelift.documents import Page, open_document

RED, WHITE = (255, 0, 0), (255, 255, 255)


def page_of(content: bytes, **options: object) -> Page:
    return open_document(content, ocr="never", **options).page(1)  # type: ignore[arg-type]


def corner_image(mode: str = "RGB") -> Image.Image:
    """300 x 200 px, white with a red quarter at the top left."""
    image = Image.new("RGB", (300, 200), WHITE)
    image.paste(RED, (0, 0, 150, 100))
    return image.convert(mode)


def native(page: Page) -> Image.Image:
    """The picture at the stored resolution of a 300 px wide image."""
    return page.image(300 * 72 / page.width_pt)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_formats(kind: str) -> None:
    picture = native(page_of(encoded(corner_image(), kind)))
    assert (picture.mode, picture.size) == ("RGB", (300, 200))
    assert max(abs(a - b) for a, b in zip(picture.getpixel((50, 50)), RED, strict=True)) < 12  # type: ignore[arg-type]
    assert min(picture.getpixel((250, 150))) > 243  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "kind"), [("1", "TIFF"), ("L", "PNG"), ("P", "PNG"), ("CMYK", "JPEG"), ("CMYK", "TIFF"), ("LA", "PNG"), ("RGBA", "PNG")]
)
def test_modes_become_rgb(mode: str, kind: str) -> None:
    source = corner_image("L").convert(mode) if mode in ("1", "L", "LA") else corner_image(mode)
    picture = native(page_of(encoded(source, kind)))
    assert picture.mode == "RGB"
    assert min(picture.getpixel((250, 150))) > 243  # type: ignore[arg-type]
    assert min(picture.getpixel((50, 50))) < 120  # type: ignore[arg-type]


def test_sixteen_bits_are_scaled_not_clipped() -> None:
    image = Image.new("I;16", (300, 200), 0x8000)
    assert native(page_of(encoded(image, "PNG"))).getpixel((5, 5)) == (128, 128, 128)


def test_transparent_is_white() -> None:
    image = Image.new("RGBA", (300, 200), (0, 0, 0, 0))
    image.paste((0, 0, 255, 255), (0, 0, 150, 100))
    for kind in ("PNG", "WEBP"):
        picture = native(page_of(encoded(image, kind, **({"lossless": True} if kind == "WEBP" else {}))))
        assert picture.getpixel((250, 150)) == WHITE
        assert picture.getpixel((50, 50)) == (0, 0, 255)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(orientation: int, kind: str) -> None:
    """Stored turned or mirrored and marked so, the picture is shown as it was."""
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # PIL.Image.Transpose codes that turn the shown picture into the stored one
    shown = corner_image()
    stored = shown.transpose(Image.Transpose(undo[orientation])) if orientation in undo else shown
    exif = Image.Exif()
    exif[0x0112] = orientation
    page = page_of(encoded(stored, kind, exif=exif, quality=95, dpi=(72, 72)))
    assert (page.width_pt, page.height_pt) == pytest.approx((300, 200), abs=0.1)
    picture = page.image(72).resize((300, 200))
    assert picture.getpixel((50, 50))[1] < 20  # type: ignore[index]
    for place in ((250, 50), (50, 150), (250, 150)):
        assert picture.getpixel(place)[1] > 235  # type: ignore[index]


def test_every_frame_of_a_tiff_is_a_page_in_any_order() -> None:
    frames = [Image.new("RGB", (100 + 50 * i, 100), (80 * i, 0, 0)) for i in range(3)]
    with open_document(encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:]), ocr="never") as document:
        assert document.page_count == 3
        for number in (3, 1, 2, 2):
            picture = document.image(number, 50)
            assert picture.getpixel((5, 5)) == (80 * (number - 1), 0, 0)
            assert document.page(number).height_pt == pytest.approx(612 * 100 / (50 + 50 * number))


def test_of_an_animation_only_the_first_frame_and_a_warning() -> None:
    frames = [Image.new("RGB", (100, 100), c) for c in (RED, (0, 255, 0))]
    with open_document(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]), ocr="never") as document:
        assert document.page_count == 1
        assert "first frame" in document.warnings[0]


@pytest.mark.parametrize(
    ("size", "dpi", "size_pt"),
    [
        ((1654, 2339), (200, 200), (595.44, 842.04)),
        ((1728, 1100), (204, 98), (609.88, 808.16)),  # a fax: pixels are not square
        ((850, 1100), (1, 1), (612, 792)),  # no resolution at all
        ((4000, 3000), (72, 72), (612, 459)),  # a camera's default, a page of 55 inches
        ((1240, 1754), (72, 72), (612, 865.68)),  # the same in a smaller picture
        ((850, 1100), None, (612, 792)),
    ],
)
def test_resolution(size: tuple[int, int], dpi: tuple[int, int] | None, size_pt: tuple[float, float]) -> None:
    page = page_of(encoded(Image.new("L", size, 255), "TIFF", compression="tiff_lzw", **({"dpi": dpi} if dpi else {})))
    assert (page.width_pt, page.height_pt) == pytest.approx(size_pt, abs=0.02)
    picture = page.image(100)
    assert picture.size == pytest.approx((size_pt[0] / 0.72, size_pt[1] / 0.72), abs=1.1)


def test_large_photo_is_decoded_smaller_and_other_formats_are_refused() -> None:
    photo = Image.new("RGB", (6000, 4000), WHITE)
    limits = Limits(page_pixels=10_000_000, worker_bytes=600 * 1024 * 1024)
    picture = page_of(encoded(photo, "JPEG"), limits=limits).image(1000)
    assert 9_000_000 < picture.width * picture.height <= 10_000_000
    with pytest.raises(LimitExceeded, match="6000 x 4000 pixels"):
        page_of(encoded(photo, "PNG"), limits=limits)


def test_truncated_image() -> None:
    content = encoded(corner_image(), "PNG")
    with pytest.raises(CorruptDocument, match="fetch or save it again"):
        page_of(content[: len(content) // 2]).image(50)
    with pytest.raises(CorruptDocument):
        open_document(io.BytesIO(content[:20]))
