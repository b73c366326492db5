"""Documents for the tests, made from scratch: small PDF files object by object, and images."""

from __future__ import annotations

import io
import zlib

from PIL import Image, ImageDraw, ImageFont

HELVETICA = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def stream(content: bytes | str, entries: str = "", length: int | None = None) -> bytes:
    """A stream object. length: what it claims, default the true one."""
    body = content.encode("latin-1") if isinstance(content, str) else content
    return f"<< /Length {len(body) if length is None else length} {entries} >>\nstream\n".encode() + body + b"\nendstream"


def deflated(content: bytes, times: int = 1) -> bytes:
    """A stream compressed `times` times."""
    for _ in range(times):
        content = zlib.compress(content, 9)
    return stream(content, f"/Filter [{' /FlateDecode' * times}]")


def assemble(objects: dict[int, bytes | str], trailer: str = "", root: int = 1) -> bytes:
    """A PDF file of numbered objects with a correct cross-reference table."""
    out = io.BytesIO()
    out.write(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = {}
    for number, body in objects.items():
        offsets[number] = out.tell()
        out.write(f"{number} 0 obj\n".encode() + (body.encode("latin-1") if isinstance(body, str) else body) + b"\nendobj\n")
    start = out.tell()
    out.write(f"xref\n0 {max(objects) + 1}\n0000000000 65535 f \n".encode())
    for number in range(1, max(objects) + 1):
        out.write(f"{offsets[number]:010d} 00000 n \n".encode() if number in offsets else b"0000000000 00000 f \n")
    out.write(f"trailer\n<< /Size {max(objects) + 1} /Root {root} 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


def pdf(
    content: bytes | str, page: str = "/MediaBox [0 0 612 792]", resources: str = "", extra: dict[int, bytes | str] | None = None
) -> bytes:
    """A PDF file of one page. Object 4 is its content, 5 the font /F1; further objects from 6 on."""
    objects: dict[int, bytes | str] = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: f"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> {resources} >> {page} >>",
        4: content if isinstance(content, bytes) and content.startswith(b"<<") else stream(content),
        5: HELVETICA,
    }
    return assemble(objects | (extra or {}))


def text(x: float, y: float, string: str, size: float = 12, more: str = "") -> str:
    """Content that shows a string at a place in PDF user space; `more` operators before it."""
    escaped = string.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"q BT /F1 {size} Tf {more} 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET Q\n"


def paper(lines: list[str], size: tuple[int, int] = (1000, 600), font_px: int = 34) -> Image.Image:
    """A white picture with printed lines."""
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(font_px)
    for index, line in enumerate(lines):
        draw.text((60, 50 + index * font_px * 2), line, fill="black", font=font)
    return image


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    """The image in a file format."""
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def scan(image: Image.Image, words: str = "", page: str = "/MediaBox [0 0 612 792]", area: str = "612 0 0 792 0 0") -> bytes:
    """A PDF page that shows `image` in `area` (a transformation matrix), then the content `words`."""
    jpeg = encoded(image, "JPEG", quality=90)
    entries = f"/Type /XObject /Subtype /Image /Width {image.width} /Height {image.height} /ColorSpace /DeviceRGB"
    picture = stream(jpeg, f"{entries} /BitsPerComponent 8 /Filter /DCTDecode")
    return pdf(f"q {area} cm /Im1 Do Q\n{words}", page, "/XObject << /Im1 6 0 R >>", {6: picture})
