"""Requests that offer to go on in another protocol, as every Java client does with `Upgrade: h2c`, read as HTTP/1.1."""

from array import array
from collections.abc import Callable, Iterable

import httptools

_FRAMING = (b"content-length", b"transfer-encoding")


class DecliningParser(httptools.HttpRequestParser):
    """httptools takes for granted that an offer is accepted: it passes the body over and reads on behind the head.

    So the body would be lost and, worse, be read as requests, which anybody could write into one that a proxy sends on
    a connection that it shares with others.
    """

    def __init__(self, protocol: object, decline: Callable[[], bytes]) -> None:
        """`decline` is called for an offer. It gives what tells of the request's body (see `framing`), if there is one;
        then the head is parsed once more with nothing but that in it.
        """
        super().__init__(protocol)
        self._decline = decline

    def feed_data(self, data: "bytes | bytearray | memoryview | array[int]") -> None:
        rest = bytes(data)
        while True:
            try:
                super().feed_data(rest)
            except httptools.HttpParserUpgrade as offer:
                rest = rest[offer.args[0] :]
                if body := self._decline():
                    super().feed_data(b"POST / HTTP/1.1\r\n" + body + b"\r\n")
            else:
                return


def framing(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Those headers, as they are sent, that say where the body ends; empty: there is none. Names are in lower case."""
    return b"".join(b"%b: %b\r\n" % header for header in headers if header[0] in _FRAMING)
