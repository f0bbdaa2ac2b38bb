"""PDFs for the tests: sound ones by PyMuPDF, broken ones written by hand."""

from pathlib import Path
from typing import Any

import pymupdf

A4 = (595.0, 842.0)


def text_pdf(path: Path, pages: int = 1, size: tuple[float, float] = A4, **save: Any) -> Path:
    """A PDF whose page N says `page N` in black."""
    document = pymupdf.open()
    for number in range(1, pages + 1):
        document.new_page(width=size[0], height=size[1]).insert_text((20, 40), f"page {number}", fontsize=20)
    document.save(path, **save)
    document.close()
    return path


def locked_pdf(path: Path, user_password: str) -> Path:
    return text_pdf(path, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=user_password, owner_pw="owner")


def raw_pdf(path: Path, *objects: bytes, trailer: bytes = b"") -> Path:
    """A PDF of `objects`, numbered from 1; the first is the catalog."""
    body = b"%PDF-1.7\n"
    offsets = []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    path.write_bytes(
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
        + b"trailer <</Size %d /Root 1 0 R %s>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, trailer, len(body))
    )
    return path


CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
HELVETICA = b"/Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"
HELLO = b"BT /F1 40 Tf 50 100 Td (Hello) Tj ET"


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(data), entries, data)


def one_page_pdf(path: Path, content: bytes, resources: bytes = HELVETICA, page: bytes = b"", *others: bytes) -> Path:
    """One page of 300 x 200 pt with the content stream `content`; `page`: further entries of its dictionary."""
    return raw_pdf(
        path,
        CATALOG,
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<<%s>>%s>>" % (resources, page),
        content,
        *others,
    )


def bomb_pdf(path: Path) -> Path:
    """Ten calls of a form that calls a form ten times, eight levels deep: hours of drawing in 2 KB."""
    forms = [
        stream(b"/X Do " * 10, b"/Type/XObject/Subtype/Form/BBox[0 0 300 200]/Resources<</XObject<</X %d 0 R>>>>" % n)
        for n in range(6, 13)
    ]
    square = stream(b"0 0 9 9 re f", b"/Type/XObject/Subtype/Form/BBox[0 0 300 200]")
    return one_page_pdf(path, stream(b"/X Do " * 10), b"/XObject<</X 5 0 R>>", b"", *forms, square)
