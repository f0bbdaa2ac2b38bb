"""Multipart bodies, in whatever chunks they come."""

import pytest

from app.errors import MultipartInvalid
from app.intake.multipart import MAX_PARTS, MultipartReader, Part
from tests.unit.intake.bodies import BOUNDARY, FORM, field_part, file_part, form, part, split

TRICKY = b"\r\n--" + BOUNDARY.encode()[:-1] + b"\r\n\r\n--\r\r\n-" + bytes(range(256)) + b"\r"


def read(body: bytes, chunk_size: int = 65_536, content_type: str = FORM) -> list[tuple[Part, bytes]]:
    """The parts of `body` with their bytes."""
    reader = MultipartReader(content_type)
    parts: list[tuple[Part, bytes]] = []
    for chunk in split(body, chunk_size):
        for item in reader.feed(chunk):
            if isinstance(item, Part):
                parts.append((item, b""))
            else:
                parts[-1] = parts[-1][0], parts[-1][1] + item
    reader.close()
    return parts


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 24, 61, 65_536])
def test_parts_and_bytes_do_not_depend_on_how_the_body_is_cut(chunk_size: int) -> None:
    body = form(field_part("pages", "1-3"), file_part(TRICKY), file_part(b""), preamble=b"To whom it may concern\r\n")

    assert read(body, chunk_size) == [
        (Part("pages", None), b"1-3"),
        (Part("file", "a.pdf"), TRICKY),
        (Part("file", "a.pdf"), b""),
    ]


def test_a_boundary_cut_at_any_place_is_found() -> None:
    body = form(file_part(b"data"))
    for cut in range(1, len(body)):
        reader = MultipartReader(FORM)
        items = reader.feed(body[:cut]) + reader.feed(body[cut:])
        reader.close()
        assert b"".join(item for item in items if isinstance(item, bytes)) == b"data"


@pytest.mark.parametrize(
    "preamble", [b"\r\n", b"one line\r\n", b"This is a preamble\r\n--not the boundary\r\n", b"--\r\n" * 99]
)
def test_a_preamble_is_passed_over(preamble: bytes) -> None:
    assert read(form(file_part(b"data"), preamble=preamble), 5) == [(Part("file", "a.pdf"), b"data")]


def test_an_epilogue_is_passed_over() -> None:
    assert read(form(file_part(b"data"), epilogue=b"\r\nthat was all")) == [(Part("file", "a.pdf"), b"data")]


def test_a_body_without_its_last_line_end_is_whole() -> None:
    assert read(form(file_part(b"data"), epilogue=b"")) == [(Part("file", "a.pdf"), b"data")]


def test_a_quoted_boundary_and_upper_case_are_understood() -> None:
    content_type = f'Multipart/Form-Data; charset=utf-8; Boundary="{BOUNDARY}"'
    assert read(form(file_part(b"data")), content_type=content_type) == [(Part("file", "a.pdf"), b"data")]


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary=""', FORM + "x" * 300],
)
def test_a_content_type_without_a_sound_boundary_is_refused(content_type: str) -> None:
    with pytest.raises(MultipartInvalid, match=r"(?i)boundary"):
        MultipartReader(content_type)


def test_a_body_cut_anywhere_is_refused() -> None:
    body = form(field_part("pages", "1"), file_part(b"data"), epilogue=b"")
    for end in range(len(body)):
        with pytest.raises(MultipartInvalid):
            read(body[:end])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"just some text", "does not contain the boundary"),
        (b"--" + BOUNDARY.encode() + b"garbage", "can't be parsed"),
        (form(b"No colon\r\n\r\ndata"), "can't be parsed"),
        (form(b"Content-Type: text/plain\r\n\r\ndata"), "no name"),
        (form(part('filename="a.pdf"', b"data")), "no name"),
        (form(part(f'name="{"x" * 10_000}"', b"")), "can't be parsed"),
        (form(part('name="x"', b"", *["X-Header: 1"] * 50)), "can't be parsed"),
    ],
)
@pytest.mark.parametrize("chunk_size", [1, 65_536])
def test_garbage_is_refused_with_its_reason(body: bytes, reason: str, chunk_size: int) -> None:
    with pytest.raises(MultipartInvalid, match=reason):
        read(body, chunk_size)


def test_the_number_of_parts_is_bounded() -> None:
    read(form(*[field_part("x", "")] * MAX_PARTS))
    with pytest.raises(MultipartInvalid, match="more than 100 parts"):
        read(form(*[field_part("x", "")] * (MAX_PARTS + 1)))


@pytest.mark.parametrize("body", [b"x" * 100_000, form(file_part(), epilogue=b"x" * 200_000)], ids=["before", "after"])
def test_bytes_outside_the_parts_are_bounded(body: bytes) -> None:
    with pytest.raises(MultipartInvalid, match="outside the parts"):
        read(body, 10_000)
