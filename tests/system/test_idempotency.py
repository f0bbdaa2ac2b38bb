"""`Idempotency-Key`: a POST that a client or a proxy repeats makes its document once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.pdfs import numbered_pdf
from tests.system.gateway import Gateway, running_gateway
from tests.waiting import until

NOBODY = "http://127.0.0.1:9"
"""An endpoint on the port of `discard`, where nothing listens: documents wait."""
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}


async def post(gateway: Gateway, pdf: bytes, **options: str) -> httpx.Response:
    file = {"file": ("a.pdf", pdf, "application/pdf")}
    return await gateway.client.post("/documents", files=file, data=options, headers=KEY)


async def documents(gateway: Gateway) -> list[str]:
    return [document["id"] for document in (await gateway.client.get("/documents")).json()["documents"]]


async def test_fifty_equal_posts_at_once_make_one_document(tmp_path: Path) -> None:
    pdf = numbered_pdf(3)
    async with running_gateway(tmp_path, [NOBODY]) as gateway:
        answers = await asyncio.gather(*(post(gateway, pdf) for _ in range(50)))

        made = [answer for answer in answers if answer.status_code == 202]
        in_flight = [answer for answer in answers if answer.status_code != 202]
        assert len(await documents(gateway)) == 1
        assert {answer.json()["id"] for answer in made} == set(await documents(gateway))
        assert Counter(answer.headers.get("Idempotent-Replayed") for answer in made)[None] == 1
        assert {(answer.status_code, answer.json()["code"]) for answer in in_flight} <= {(409, "idempotency_in_flight")}
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in in_flight)


async def test_a_key_stands_for_one_body_and_its_options_also_after_a_restart(tmp_path: Path) -> None:
    pdf = numbered_pdf(3)
    async with running_gateway(tmp_path, [NOBODY]) as gateway:
        first = await post(gateway, pdf)
        await gateway.terminate()
    async with running_gateway(tmp_path, [NOBODY]) as gateway:
        for other in (await post(gateway, numbered_pdf(2)), await post(gateway, pdf, pages="1")):
            assert (other.status_code, other.json()["code"]) == (422, "idempotency_conflict")
        again = await post(gateway, pdf)

        assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.headers["Location"] == first.headers["Location"]
        assert await documents(gateway) == [first.json()["id"]]

        await gateway.client.delete(first.headers["Location"])
        erased = await post(gateway, pdf)
        assert (erased.status_code, erased.json()["code"]) == (410, "gone")


async def test_a_post_that_was_cut_by_a_kill_is_repeated_and_makes_one_document(tmp_path: Path) -> None:
    pdf = numbered_pdf(3)

    async def half() -> AsyncIterator[bytes]:
        yield pdf[: len(pdf) // 2]
        await asyncio.Event().wait()

    async with running_gateway(tmp_path, [NOBODY]) as gateway:
        cut = asyncio.create_task(gateway.client.post("/documents", content=half(), headers=KEY))
        await until(lambda: any((tmp_path / "spool").glob("*")))
        repeated = await gateway.client.post("/documents", content=pdf, headers=KEY)
        assert (repeated.status_code, repeated.json()["code"]) == (409, "idempotency_in_flight")
        await gateway.kill()
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)

    async with running_gateway(tmp_path, [NOBODY]) as gateway:
        answers = [await gateway.client.post("/documents", content=pdf, headers=KEY) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [202, 202]
        assert {answer.json()["id"] for answer in answers} == set(await documents(gateway))
        assert len(await documents(gateway)) == 1


async def test_a_client_that_leaves_may_come_back_with_its_key_at_once(tmp_path: Path) -> None:
    pdf = numbered_pdf(3)

    async def half() -> AsyncIterator[bytes]:
        yield pdf[: len(pdf) // 2]
        raise ConnectionAbortedError

    async def accepted() -> bool:
        return (await post(gateway, pdf)).status_code == 202

    async with running_gateway(tmp_path, [NOBODY]) as gateway:
        with pytest.raises(ConnectionAbortedError):
            await gateway.client.post("/documents", content=half(), headers=KEY)
        await until(accepted)
        assert len(await documents(gateway)) == 1
