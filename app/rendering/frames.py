"""Frames between the gateway and a render process: two lengths, a JSON header, raw bytes.

Never pickle: a process that parses hostile files is not trusted, and unpickling runs code. Sizes are bounded for the
same reason.
"""

import json
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from asyncio import StreamReader

MAX_HEADER_BYTES = 64 * 1024

_LENGTHS = Struct("!II")

Header = dict[str, Any]


class FrameError(ValueError):
    """The other side does not keep to the protocol."""


@dataclass(frozen=True, slots=True)
class Frame:
    header: Header
    payload: bytes = b""

    def parts(self) -> tuple[bytes, bytes, bytes]:
        """The bytes to write, in pieces, so that the payload is not copied."""
        header = json.dumps(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.payload)), header, self.payload


def read_frame(stream: BinaryIO) -> Frame | None:
    """The next frame of the gateway's; None at the end of the stream."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header, payload = _LENGTHS.unpack(lengths)
    return Frame(_header(stream.read(header)), stream.read(payload))


async def receive_frame(reader: "StreamReader", max_payload_bytes: int) -> Frame:
    """The next frame of a render process; raises `FrameError`, and `EOFError` at the end of the stream."""
    header, payload = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    if header > MAX_HEADER_BYTES or payload > max_payload_bytes:
        raise FrameError(f"a frame of {header} + {payload} bytes")
    return Frame(_header(await reader.readexactly(header)), await reader.readexactly(payload))


def _header(text: bytes) -> Header:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError("a header that is no JSON") from error
    if not isinstance(header, dict):
        raise FrameError("a header that is no object")
    return header
