"""The blob store on a real S3 server."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import obstore
import pytest
from obstore.store import from_url

from app.errors import NotFound
from app.journal.blobs import blob_key
from app.journal.object_blobs import ObjectBlobs
from app.settings import MIB, Settings
from tests.blobs import keys_of
from tests.pdfs import numbered_pdf
from tests.servers import SeaweedServer
from tests.standins import StandIn
from tests.system.gateway import Gateway, running_gateway
from tests.waiting import until

KEY = blob_key("default", "0198")
LARGE_BYTES = 20 * MIB + 1
"""Three parts of a multipart upload."""
START_SECONDS = 60


@pytest.fixture
def bucket(seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of an empty bucket, of which obstore learns the rest from the environment."""
    for name, value in seaweed.environment.items():
        monkeypatch.setenv(name, value)
    return seaweed.create_bucket()


@pytest.mark.parametrize("size", [0, 1000, LARGE_BYTES], ids=["empty", "small", "multipart"])
async def test_a_file_goes_in_and_out_unchanged(bucket: str, tmp_path: Path, size: int) -> None:
    blobs = await ObjectBlobs.open(f"{bucket}/prefix", Settings(data_dir=tmp_path))
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    spool = tmp_path / "a.part"
    spool.write_bytes(data)

    await blobs.publish(spool, KEY)

    assert not spool.exists()
    assert await keys_of(blobs) == [KEY]
    async with blobs.local(KEY) as path:
        assert path.read_bytes() == data
    await blobs.delete(KEY)
    await blobs.delete(KEY)
    assert await keys_of(blobs) == []
    with pytest.raises(NotFound):
        async with blobs.local(KEY):
            pass
    await blobs.close()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [({"PAGEFLEET_BLOB_URL": "s3://absent"}, "404"), ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "403")],
    ids=["bucket", "secret"],
)
async def test_a_bucket_that_can_not_be_used_ends_the_start_with_one_line(
    bucket: str, tmp_path: Path, wrong: dict[str, str], reason: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", "serve", "--port", "0", "--data-dir", str(tmp_path)),
        env={**os.environ, "PAGEFLEET_CPU_REPLICAS": "0", "PAGEFLEET_BLOB_URL": bucket, **wrong},
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), START_SECONDS)

    assert process.returncode == 2
    (line,) = said.decode().splitlines()
    assert "the blob store can't be used" in line
    assert reason in line


@asynccontextmanager
async def gateway_on(bucket: str, data_dir: Path, replica: StandIn, blob_seconds: float) -> AsyncIterator[Gateway]:
    settings = {"PAGEFLEET_BLOB_URL": bucket, "PAGEFLEET_BLOB_SECONDS": str(blob_seconds)}
    async with running_gateway(data_dir, [replica.url], settings) as gateway:
        yield gateway


@contextmanager
def away(seaweed: SeaweedServer) -> Iterator[None]:
    """The server is dead as long as the context, or until it is started there."""
    seaweed.kill()
    try:
        yield
    finally:
        seaweed.kill()
        seaweed.start()


def objects(bucket: str) -> int:
    return len(obstore.list(from_url(bucket)).collect())


async def test_an_upload_is_refused_while_the_store_is_away_and_leaves_nothing(
    bucket: str, seaweed: SeaweedServer, tmp_path: Path
) -> None:
    async with StandIn() as replica, gateway_on(bucket, tmp_path, replica, blob_seconds=3) as gateway:
        document = await gateway.post(numbered_pdf(1))
        assert (await gateway.ended(document["id"]))["state"] == "succeeded"
        with away(seaweed):
            response = await gateway.client.post("/documents", content=numbered_pdf(2))
        assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
        assert "127.0.0.1" not in response.text
        assert int(response.headers["Retry-After"]) > 0
        assert list((tmp_path / "spool").iterdir()) == []

        another = await gateway.post(numbered_pdf(3))
        assert (await gateway.ended(another["id"]))["state"] == "succeeded"
        assert objects(bucket) == 2
        for each in (document, another):
            assert (await gateway.client.delete(f"/documents/{each['id']}")).status_code == 204
        assert objects(bucket) == 0
        assert list((tmp_path / "cache").iterdir()) == []
        assert await gateway.terminate() == 0


@asynccontextmanager
async def claimed_without_store(
    bucket: str, seaweed: SeaweedServer, data_dir: Path, blob_seconds: float
) -> AsyncIterator[tuple[Gateway, str]]:
    """A gateway and its document of three pages, which get a lane when the store is away, as it is in the context."""
    async with StandIn() as replica:
        replica.health_status = 500
        async with gateway_on(bucket, data_dir, replica, blob_seconds) as gateway:
            document = await gateway.post(numbered_pdf(3))
            with away(seaweed):
                replica.health_status = 200
                yield gateway, document["id"]


async def test_pages_wait_for_a_store_that_comes_back(bucket: str, seaweed: SeaweedServer, tmp_path: Path) -> None:
    async with claimed_without_store(bucket, seaweed, tmp_path, blob_seconds=100) as (gateway, document_id):
        ending = asyncio.create_task(gateway.ended(document_id))

        async def running() -> bool:
            response = await gateway.client.get(f"/documents/{document_id}")
            return bool(response.json()["pages"]["running"] == 3)

        await until(running)
        seaweed.start()
        assert (await ending)["state"] == "succeeded"


async def test_pages_fail_clearly_when_the_store_stays_away_and_can_be_retried(
    bucket: str, seaweed: SeaweedServer, tmp_path: Path
) -> None:
    async with claimed_without_store(bucket, seaweed, tmp_path, blob_seconds=1) as (gateway, document_id):
        assert (await gateway.ended(document_id))["state"] == "failed"
        pages = (await gateway.client.get(f"/documents/{document_id}/pages")).json()["pages"]
        assert [(page["error"]["code"], page["error"]["retryable"]) for page in pages] == [
            ("source_unavailable", True)
        ] * 3
        seaweed.start()
        response = await gateway.client.post(f"/documents/{document_id}/retry")
        assert response.status_code == 202
        assert (await gateway.ended(document_id))["state"] == "succeeded"
