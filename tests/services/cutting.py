"""A TCP proxy before PostgreSQL that cuts a connection between a COMMIT and its answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

CHUNK_BYTES = 65_536
ENDS = (b"COMMIT\0", b"ROLLBACK\0")
"""The statements as the protocol has them."""


class CuttingProxy:
    """Passes everything on, until it is told what to cut."""

    def __init__(self, url: str) -> None:
        """`url` is that of a database."""
        self._target = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._statement: bytes | None = None
        self.cuts = 0

    @property
    def url(self) -> str:
        """The same database through the proxy."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        userinfo = self._target.netloc.rpartition("@")[0]
        return self._target._replace(netloc=f"{userinfo}@127.0.0.1:{port}").geturl()

    def cut_commit_of(self, statement: str) -> None:
        """Let the next transaction that contains `statement` be committed, and cut its connection before the answer.

        The driver sends the text of a statement the first times only: a proxy serves one gateway for a few pages.
        """
        self._statement = statement.encode()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection(self._target.hostname, self._target.port)
        answers = asyncio.create_task(_pass_on(there, writer))
        try:
            commit = await self._pass_until_cut(reader, here)
            if commit:
                answers.cancel()  # before PostgreSQL sees the COMMIT
                await asyncio.gather(answers, return_exceptions=True)
                here.write(commit)
                await there.read(CHUNK_BYTES)  # committed, and nobody else will see the answer
                self.cuts += 1
        except ConnectionError:
            pass  # the gateway was killed, or threw the connection away
        finally:
            answers.cancel()
            writer.transport.abort()
            here.transport.abort()

    async def _pass_until_cut(self, reader: asyncio.StreamReader, here: asyncio.StreamWriter) -> bytes:
        """The COMMIT that is to be cut, not yet sent; empty at the end of the connection."""
        transaction = b""
        while data := await reader.read(CHUNK_BYTES):
            transaction += data
            if any(end in transaction for end in ENDS):
                if self._statement is not None and self._statement in transaction:
                    self._statement = None
                    return data
                transaction = b""
            here.write(data)
        return b""


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
    writer.close()


@asynccontextmanager
async def cutting_proxy(url: str) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(url)
    await proxy.start()
    yield proxy
    await proxy.stop()
