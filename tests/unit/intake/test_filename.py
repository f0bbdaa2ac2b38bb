"""Names of uploaded files."""

import pytest

from app.intake.filename import clean_filename, disposition


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b'form-data; name="file"; filename="a b.pdf"', "a b.pdf"),
        (b"attachment; filename=plain.pdf", "plain.pdf"),
        (b'attachment; FileName="a;b=c.pdf"', "a;b=c.pdf"),
        (b'attachment; filename="say \\"hi\\".pdf"', 'say "hi".pdf'),
        ('form-data; filename="発注書 №7 📄.pdf"'.encode(), "発注書 №7 📄.pdf"),
        ('form-data; filename="Ünïcode.pdf"'.encode("latin-1"), "Ünïcode.pdf"),
        (b"attachment; filename*=UTF-8''%E2%82%AC%20rates.pdf", "€ rates.pdf"),
        (b"attachment; filename=\"fallback.pdf\"; filename*=utf-8'en'%e2%82%ac.pdf", "€.pdf"),
        (b"attachment; filename*=utf-8''%e2%82%ac.pdf; filename=fallback.pdf", "€.pdf"),
        (b"attachment; filename*=iso-8859-1''%A3.pdf", "£.pdf"),
        (b"attachment; filename*=hex''61; filename=plain.pdf", "plain.pdf"),
        (b"attachment; filename*=utf-8''%ff.pdf", "\N{REPLACEMENT CHARACTER}.pdf"),
    ],
)
def test_the_name_in_a_header_is_read_in_every_common_encoding(header: bytes, name: str) -> None:
    assert disposition(header)["filename"] == name


@pytest.mark.parametrize("header", [b"", b"form-data", b";;;=;", b'form-data; name="', b"\xff\x00", b"a" * 100_000])
def test_a_header_without_a_name_gives_none(header: bytes) -> None:
    assert "filename" not in disposition(header)


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("report.pdf", "report.pdf"),
        ("../../../../tmp/ocr-escape\\..\\x.pdf", "x.pdf"),
        ("C:\\Users\\me\\x.pdf", "x.pdf"),
        ("/etc/passwd", "passwd"),
        ("bad\x00\x1bname\n.pdf", "badname .pdf"),
        ("a" * 300, "a" * 255),
        ("..", "document"),
        (".", "document"),
        ("folder/", "document"),
        ("   ", "document"),
        ("", "document"),
        (None, "document"),
    ],
)
def test_a_name_is_text_and_never_a_path(name: str | None, cleaned: str) -> None:
    assert clean_filename(name) == cleaned
