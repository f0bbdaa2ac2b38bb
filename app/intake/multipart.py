"""multipart/form-data (RFC 7578) as a stream of parts and their bytes."""

from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, MultipartState, parse_options_header

from app.errors import MultipartInvalid
from app.intake.filename import disposition

MAX_PARTS = 100
_MAX_OUTSIDE_BYTES = 64 * 1024
"""Bytes allowed before the first boundary, and after the last: the standard sets no bound, clients send none."""


@dataclass(frozen=True, slots=True)
class Part:
    """The begin of a part; its bytes follow."""

    name: str
    filename: str | None
    """None: the part is a field. Otherwise a file's name as the client gave it."""


class MultipartReader:
    """Reads a body chunk by chunk and holds none of it.

    All methods raise `MultipartInvalid` for what breaks the format or its bounds.
    """

    def __init__(self, content_type: str) -> None:
        """`content_type`: the header's value, with the boundary in it."""
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if not boundary:
            raise MultipartInvalid("the Content-Type of a multipart body needs a boundary")
        try:
            self._parser = MultipartParser(
                boundary,
                callbacks={
                    "on_part_begin": self._on_part_begin,
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                },
            )
        except FormParserError as error:
            raise MultipartInvalid(str(error)) from error
        self._delimiter = b"--" + boundary
        self._preamble: bytearray | None = bytearray(b"\n")  # the body's begin counts as the begin of a line
        self._epilogue_bytes = 0
        self._parts = 0
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._items: list[Part | bytes] = []

    def feed(self, chunk: bytes) -> list[Part | bytes]:
        """What `chunk` brings, in order: a `Part` where one begins, and the bytes of the part that began last."""
        if self._preamble is not None:
            chunk = self._skip_preamble(self._preamble, chunk)
        elif self._ended:
            self._epilogue_bytes += len(chunk)
            self._check_outside(self._epilogue_bytes)
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise MultipartInvalid(f"the multipart body can't be parsed: {error}") from error
        items, self._items = self._items, []
        return items

    def close(self) -> None:
        """The body has ended."""
        if self._preamble is not None:
            raise MultipartInvalid("the body does not contain the boundary that its Content-Type names")
        if not self._ended:
            raise MultipartInvalid("the body ends before its last boundary")

    @property
    def _ended(self) -> bool:
        return self._parser.state == MultipartState.END

    def _skip_preamble(self, preamble: bytearray, chunk: bytes) -> bytes:
        """The part of the body so far that the parser, which knows no preamble, can begin with."""
        searched = max(0, len(preamble) - len(self._delimiter) - 1)
        preamble += chunk
        found = preamble.find(b"\n" + self._delimiter, searched)
        if found < 0:
            self._check_outside(len(preamble))
            return b""
        self._preamble = None
        return bytes(preamble[found + 1 :])

    @staticmethod
    def _check_outside(size: int) -> None:
        if size > _MAX_OUTSIDE_BYTES:
            raise MultipartInvalid("too many bytes outside the parts of the body", limit=_MAX_OUTSIDE_BYTES)

    def _on_part_begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise MultipartInvalid(f"the body has more than {MAX_PARTS} parts", limit=MAX_PARTS)
        self._disposition = b""

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name = self._header_value = b""

    def _on_headers_finished(self) -> None:
        parameters = disposition(self._disposition)
        if "name" not in parameters:
            raise MultipartInvalid("a part of the body has no name")
        self._items.append(Part(parameters["name"], parameters.get("filename")))

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._items.append(data[start:end])
