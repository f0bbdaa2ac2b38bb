import asyncio
from io import BytesIO

import pytest

from app.rendering.frames import MAX_HEADER_BYTES, Frame, FrameError, read_frame, receive_frame


def _reader(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


def _frame(header: bytes, payload: bytes = b"") -> bytes:
    return len(header).to_bytes(4, "big") + len(payload).to_bytes(4, "big") + header + payload


async def test_frames_come_out_as_they_went_in() -> None:
    frames = [Frame({"a": [1, "ü"]}, b"\x00payload"), Frame({})]
    written = b"".join(part for frame in frames for part in frame.parts())
    stream, reader = BytesIO(written), _reader(written)
    assert [read_frame(stream), read_frame(stream), read_frame(stream)] == [*frames, None]
    assert [await receive_frame(reader, 100), await receive_frame(reader, 100)] == frames
    with pytest.raises(EOFError):
        await receive_frame(reader, 100)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_frame(b"{}", b"12345"), id="payload over the limit"),
        pytest.param((MAX_HEADER_BYTES + 1).to_bytes(4, "big") + bytes(4), id="header over the limit"),
        pytest.param(_frame(b"no json"), id="no JSON"),
        pytest.param(_frame(b"[]"), id="no object"),
        pytest.param(_frame(b"[" * 60_000), id="nested past the recursion limit"),
        pytest.param(_frame(b"\xff\xfe"), id="no text"),
    ],
)
async def test_what_keeps_not_to_the_protocol_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        await receive_frame(_reader(data), max_payload_bytes=4)
