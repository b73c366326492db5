"""Files that try to crash, hang or fill the memory of a program that opens them; for the tests of every part that takes documents."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Iterator

from making import HELVETICA, assemble, deflated, encoded, paper, pdf, scan, stream, text
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

LINES = ["Invoice 4711", "Total 119.00"]
CONTENT = text(72, 700, "Invoice 4711") + text(72, 650, "Total 119.00")


def hostile_documents(mutations: int = 60, seed: int = 1, scale: float = 1.0) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file. mutations: number of randomly damaged files, the same for the same seed.

    scale: size of the bombs; smaller ones are made and defused faster.
    """
    yield from _not_documents()
    yield from _structures()
    yield from _pages()
    yield from _bombs(scale)
    yield from _recursions()
    yield from _images()
    yield from _mutations(mutations, seed)


def encrypted_pdf(password: str) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, encrypt=StandardEncryption(password, strength=128))
    canvas.drawString(72, 700, LINES[0])
    canvas.save()
    return out.getvalue()


def _not_documents() -> Iterator[tuple[str, bytes]]:
    noise = random.Random(7)
    yield "empty.pdf", b""
    yield "one-byte.pdf", b"%"
    yield "only-header.pdf", b"%PDF-1.7\n"
    yield "text-named.pdf", b"Dear Sir or Madam,\nplease find no PDF here.\n" * 50
    yield "html-named.pdf", b"<!DOCTYPE html><html><body>404</body></html>"
    yield "archive-named.pdf", b"PK\x03\x04" + noise.randbytes(500)
    yield "zeros.pdf", bytes(4096)
    for size in (10, 1000, 100_000):
        yield f"random-{size}.bin", noise.randbytes(size)
    yield "random-behind-header.pdf", b"%PDF-1.7\n" + noise.randbytes(20_000)
    yield "late-header.pdf", b" " * 2000 + pdf(CONTENT)
    yield "noise-before-header.pdf", b"\x00garbage\n" + pdf(CONTENT)


def _structures() -> Iterator[tuple[str, bytes]]:
    good = pdf(CONTENT)
    for percent in (5, 20, 40, 60, 80, 90, 97):
        yield f"truncated-{percent}.pdf", good[: len(good) * percent // 100]
    yield "no-xref.pdf", good[: good.index(b"xref")]
    yield "huge-startxref.pdf", good.replace(b"startxref\n", b"startxref\n9999999999999")
    yield "negative-startxref.pdf", good.replace(b"startxref\n", b"startxref\n-")
    yield "xref-points-to-itself.pdf", good.replace(b"trailer\n<<", b"trailer\n<< /Prev %d" % good.index(b"xref\n"))
    yield "huge-size.pdf", good.replace(b"/Size 6", b"/Size 2147483647")
    yield "no-root.pdf", good.replace(b"/Root 1 0 R", b"")
    yield "root-is-page.pdf", good.replace(b"/Root 1 0 R", b"/Root 3 0 R")
    yield "contents-missing.pdf", good.replace(b"/Contents 4 0 R", b"/Contents 99 0 R")
    yield "stream-too-long.pdf", pdf(stream(CONTENT, length=10**9))
    yield "stream-negative.pdf", pdf(stream(CONTENT, length=-5))
    yield "unbalanced.pdf", pdf("Q Q Q ET BT BT q q 1 0 0 " + CONTENT + " ] ) > >> Tj")
    yield "encrypted.pdf", encrypted_pdf("secret")
    yield "unknown-encryption.pdf", good.replace(b"/Root", b"/Encrypt << /Filter /Nonsense /V 99 >> /Root")
    yield "javascript.pdf", good.replace(b"/Catalog", b"/Catalog /OpenAction << /S /JavaScript /JS (while(true){}) >>")


def _pages() -> Iterator[tuple[str, bytes]]:
    good = pdf(CONTENT)
    yield "zero-pages.pdf", good.replace(b"/Kids [3 0 R] /Count 1", b"/Kids [] /Count 0")
    yield "count-lies.pdf", good.replace(b"/Count 1", b"/Count 1999999999")
    yield "count-negative.pdf", good.replace(b"/Count 1", b"/Count -1")
    yield "kids-are-parent.pdf", good.replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]")
    yield "kids-twice.pdf", good.replace(b"/Kids [3 0 R] /Count 1", b"/Kids [3 0 R 3 0 R] /Count 2")
    boxes = {
        "two-billion-points": "0 0 2000000000 2000000000",
        "long-strip": "0 0 2000000000 1",
        "negative": "0 0 -612 -792",
        "no-area": "0 0 0 0",
        "tiny": "0 0 0.001 0.001",
        "far-away": "1e9 1e9 1.0000001e9 1.0000001e9",
        "not-numbers": "/a (b) null [1]",
        "too-few": "0 0 612",
    }
    for name, box in boxes.items():
        yield f"page-{name}.pdf", pdf(CONTENT, f"/MediaBox [{box}]")
    yield "crop-outside.pdf", pdf(CONTENT, "/MediaBox [0 0 612 792] /CropBox [5000 5000 6000 6000]")
    yield "odd-rotation.pdf", pdf(CONTENT, "/MediaBox [0 0 612 792] /Rotate 45")
    yield "huge-unit.pdf", pdf(CONTENT, "/MediaBox [0 0 612 792] /UserUnit 1e30")
    objects: dict[int, bytes | str] = {1: "<< /Type /Catalog /Pages 2 0 R >>"}
    count = 5000
    objects[2] = f"<< /Type /Pages /Kids [{' '.join(f'{n} 0 R' for n in range(3, count + 3))}] /Count {count} /MediaBox [0 0 612 792] >>"
    objects |= dict.fromkeys(range(3, count + 3), "<< /Type /Page /Parent 2 0 R >>")
    yield "five-thousand-pages.pdf", assemble(objects)


def _bombs(scale: float) -> Iterator[tuple[str, bytes]]:
    yield "flate-bomb.pdf", pdf(deflated(bytes(int(200e6 * scale))))
    yield "double-flate-bomb.pdf", pdf(deflated(bytes(int(300e6 * scale)), times=2))
    yield "operators-bomb.pdf", pdf(deflated(b"0 0 m 1 1 l S\n" * int(3e6 * scale)))
    yield "text-bomb.pdf", pdf(deflated((text(72, 700, "all work and no play makes a dull page ") * int(40_000 * scale)).encode()))
    yield "many-objects.pdf", pdf(deflated(b"".join(b"%d %d 50 20 re S\n" % (n % 500, n % 700) for n in range(int(100_000 * scale)))))
    yield "deep-save.pdf", pdf(deflated(b"q " * int(2e6 * scale)))
    yield "deep-arrays.pdf", pdf(CONTENT, f"/MediaBox [0 0 612 792] /X {'[' * 20_000}{']' * 20_000}")
    yield "deep-dictionaries.pdf", pdf(CONTENT, f"/MediaBox [0 0 612 792] /X {'<< /X ' * 5_000}{'>>' * 5_000}")
    for name, side, bits, colors in (("huge-image", 60_000, 1, "/DeviceGray"), ("huge-color-image", 30_000, 8, "/DeviceRGB")):
        entries = f"/Subtype /Image /Width {side} /Height {side} /ColorSpace {colors} /BitsPerComponent {bits} /Filter /FlateDecode"
        picture = stream(zlib.compress(bytes(1_000_000)), entries)
        yield f"{name}.pdf", pdf("q 600 0 0 700 0 0 cm /Im1 Do Q", resources="/XObject << /Im1 6 0 R >>", extra={6: picture})
    for name in ("JBIG2Decode", "JPXDecode", "CCITTFaxDecode", "DCTDecode", "LZWDecode", "RunLengthDecode", "Crypt", "Nonsense"):
        entries = f"/Subtype /Image /Width 5000 /Height 5000 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /{name}"
        picture = stream(random.Random(3).randbytes(2000), entries)
        yield f"image-{name}.pdf", pdf("q 600 0 0 700 0 0 cm /Im1 Do Q", resources="/XObject << /Im1 6 0 R >>", extra={6: picture})
    yield (
        "pattern-storm.pdf",
        pdf(
            "/Pattern cs /P1 scn 0 0 612 792 re f",
            resources="/Pattern << /P1 6 0 R >>",
            extra={
                6: stream(
                    "0 0 0.01 0.01 re f",
                    "/PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 1 1] /XStep 0.001 /YStep 0.001 /Resources << >>",
                )
            },
        ),
    )


def _recursions() -> Iterator[tuple[str, bytes]]:
    form = "/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /Fm1 6 0 R /Fm2 7 0 R >> >>"
    resources = "/XObject << /Fm1 6 0 R >>"
    yield "form-in-itself.pdf", pdf("/Fm1 Do", resources=resources, extra={6: stream("/Fm1 Do", form)})
    yield "forms-in-each-other.pdf", pdf("/Fm1 Do", resources=resources, extra={6: stream("/Fm2 Do", form), 7: stream("/Fm1 Do", form)})
    levels = {
        n: stream(
            f"/Fm{n + 1} Do " * 10, f"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /Fm{n + 1} {n + 1} 0 R >> >>"
        )
        for n in range(6, 14)
    }
    yield "exponential-forms.pdf", pdf("/Fm6 Do", resources="/XObject << /Fm6 6 0 R >>", extra={**levels, 14: stream("0 0 1 1 re f", form)})
    glyphs = "/Encoding << /Differences [65 /a] >> /FirstChar 65 /LastChar 65 /Widths [1000] /FontBBox [0 0 1 1] /FontMatrix [1 0 0 1 0 0]"
    type3 = f"<< /Type /Font /Subtype /Type3 /CharProcs << /a 7 0 R >> {glyphs} /Resources << /Font << /F2 6 0 R >> >> >>"
    yield (
        "font-in-itself.pdf",
        pdf("BT /F2 12 Tf (AAAA) Tj ET", resources="/Font << /F2 6 0 R >>", extra={6: type3, 7: stream("BT /F2 1 Tf (AAAA) Tj ET")}),
    )
    yield (
        "contents-array-loop.pdf",
        pdf(CONTENT).replace(b"/Contents 4 0 R", b"/Contents 6 0 R").replace(b"\nxref", b"\n6 0 obj\n[6 0 R 6 0 R]\nendobj\nxref"),
    )
    fields = "/AcroForm << /Fields [6 0 R] /DA (/F1 0 Tf) /NeedAppearances true >>"
    loop = "<< /FT /Tx /T (a) /V (x) /Kids [7 0 R] /Parent 7 0 R >>"
    widget = "<< /Type /Annot /Subtype /Widget /Rect [10 10 99999999 30] /Parent 6 0 R /Kids [6 0 R] >>"
    looped = assemble(
        {
            1: f"<< /Type /Catalog /Pages 2 0 R {fields} >>",
            2: "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [7 0 R 7 0 R 99 0 R 3 0 R] >>",
            5: HELVETICA,
            6: loop,
            7: widget,
        }
    )
    yield "form-field-loop.pdf", looped


def _images() -> Iterator[tuple[str, bytes]]:
    image = paper(LINES, (400, 200), 20)
    png, jpeg, tiff = encoded(image, "PNG"), encoded(image, "JPEG"), encoded(image, "TIFF")
    for kind in ("PNG", "JPEG", "TIFF", "GIF", "BMP", "WEBP"):
        content = encoded(image, kind)
        for percent in (2, 50, 95):
            yield f"truncated-{percent}.{kind.lower()}", content[: len(content) * percent // 100]
        yield f"random.{kind.lower()}", content[:16] + random.Random(5).randbytes(3000)
    for width, height in ((100_000, 100_000), (2_000_000_000, 2_000_000_000), (0, 0), (1, 1_000_000)):
        yield f"png-{width}x{height}.png", _png(width, height)
    start = jpeg.index(b"\xff\xc0")
    for width, height in ((65_000, 65_000), (1, 1), (4000, 3000), (0, 10)):
        yield f"jpeg-says-{width}x{height}.jpg", jpeg[: start + 5] + struct.pack(">HH", height, width) + jpeg[start + 9 :]
    offset = struct.unpack("<I", tiff[4:8])[0]
    end = offset + 2 + 12 * struct.unpack("<H", tiff[offset : offset + 2])[0]
    yield "tiff-loop.tiff", tiff[:end] + struct.pack("<I", offset) + tiff[end + 4 :]
    yield "tiff-wild-next.tiff", tiff[:end] + struct.pack("<I", 0x7FFFFFFF) + tiff[end + 4 :]
    yield "text-chunk-bomb.png", png[:33] + _chunk(b"zTXt", b"a\x00\x00" + zlib.compress(bytes(100_000_000))) + png[33:]
    yield "profile-bomb.png", png[:33] + _chunk(b"iCCP", b"a\x00\x00" + zlib.compress(bytes(100_000_000))) + png[33:]
    yield "huge.bmp", b"BM" + struct.pack("<IHHIIiiHHIIiiII", 100, 0, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, 0, 0, 0, 0, 0, 0)
    yield "broken-exif.jpg", jpeg[:2] + b"\xff\xe1\x00\x20Exif\x00\x00" + b"II*\x00\xff\xff\xff\x7f" + bytes(16) + jpeg[2:]


def _png(width: int, height: int) -> bytes:
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + _chunk(b"IDAT", zlib.compress(bytes(1_000_000))) + _chunk(b"IEND", b"")


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _mutations(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    noise = random.Random(seed)
    image = paper(LINES, (200, 100), 16)
    originals = [
        ("pdf", pdf(CONTENT)),
        ("pdf", scan(image, CONTENT)),
        ("pdf", encrypted_pdf("")),
        ("png", encoded(image, "PNG")),
        ("jpg", encoded(image, "JPEG")),
        ("tiff", encoded(image, "TIFF", compression="tiff_lzw")),
        ("gif", encoded(image, "GIF")),
        ("webp", encoded(image, "WEBP")),
    ]
    for index in range(count):
        kind, content = originals[index % len(originals)]
        damaged = bytearray(content)
        for _ in range(noise.choice((1, 3, 10, 50))):
            at = noise.randrange(len(damaged))
            change = noise.randrange(4)
            if change == 0:
                damaged[at] = noise.randrange(256)
            elif change == 1:
                damaged[at] ^= 1 << noise.randrange(8)
            elif change == 2:
                del damaged[at : at + noise.randrange(1, 20)]
            else:
                damaged[at:at] = noise.randbytes(noise.randrange(1, 20))
        yield f"mutation-{index}.{kind}", bytes(damaged)
