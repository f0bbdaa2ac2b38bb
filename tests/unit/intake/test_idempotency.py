"""Requests that are repeated with their idempotency key, with a real journal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import update

from app.documents.options import Options
from app.documents.records import Document
from app.errors import (
    Busy,
    DamagedPdf,
    FileTooLarge,
    Gone,
    IdempotencyConflict,
    IdempotencyInFlight,
    OptionInvalid,
    PagefleetError,
    UnsupportedType,
)
from app.intake import Intake, Receipt, Upload
from app.intake.idempotency import fingerprint_of, idempotency_key
from app.intake.spool import Spool
from app.journal import Journal
from app.journal.blobs import FolderBlobs
from app.journal.tables import idempotency_keys
from app.settings import Settings
from tests.blobs import keys_of
from tests.unit.intake.bodies import FORM, PDF_BYTES, chunks, field_part, file_part, form
from tests.unit.intake.test_intake import MAX_FILE_BYTES, Inspector, unreadable

KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"


class Room:
    """An intake over a journal of its own."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self.settings = settings
        self.journal = journal
        self.inspector = Inspector()
        self.blobs = FolderBlobs(settings.blob_dir)
        self.intake = Intake(settings, journal, self.blobs, self.inspector, ("cpu",), resolve_profile=lambda: None)

    async def post(self, *parts: bytes, key: str = KEY, tenant: str = "default") -> Receipt:
        return await self.upload(chunks(form(*parts)), key, tenant)

    async def upload(self, body: AsyncIterator[bytes], key: str = KEY, tenant: str = "default") -> Receipt:
        return await self.intake.receive(Upload(body, {}, content_type=FORM, idempotency_key=key), tenant)

    async def ids(self, tenant: str = "default") -> set[str]:
        """Of all documents that there are; each has its bytes, and nobody else has any."""
        documents, _ = await self.journal.list_documents(tenant)
        assert {document.blob_key for document in documents} == set(await keys_of(self.blobs))
        assert list(self.settings.spool_dir.glob("*")) == []
        return {document.id for document in documents}


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    settings = Settings(data_dir=tmp_path, max_file_bytes=MAX_FILE_BYTES)
    journal = await Journal.open(settings)
    yield Room(settings, journal)
    await journal.close()


def ids(receipt: Receipt) -> list[str | type[PagefleetError]]:
    return [item.id if isinstance(item, Document) else type(item) for item in receipt.items]


async def test_a_repeated_request_gets_the_document_that_the_first_made(room: Room) -> None:
    first = await room.post(field_part("priority", "2"), file_part())
    again = await room.post(file_part(), field_part("priority", "2"))

    assert (first.replayed, again.replayed) == (False, True)
    assert ids(first) == ids(again) == list(await room.ids())


async def test_what_is_not_said_and_what_is_meant_by_it_are_the_same(room: Room) -> None:
    first = await room.post(file_part())
    again = await room.post(file_part(), field_part("priority", "3"), field_part("profile", "auto"))

    assert ids(first) == ids(again)


async def test_a_replay_shows_the_document_as_it_is_now(room: Room) -> None:
    (document,) = (await room.post(file_part())).items
    assert isinstance(document, Document)
    cancelled = await room.journal.cancel(document.id)

    assert (await room.post(file_part())).items == [cancelled]


async def test_a_document_that_was_erased_is_gone_and_not_made_again(room: Room) -> None:
    (document,) = (await room.post(file_part())).items
    assert isinstance(document, Document)
    await room.blobs.delete(await room.journal.delete(document.id))

    again = await room.post(file_part())

    assert (ids(again), again.replayed) == ([Gone], True)
    assert await room.ids() == set()


@pytest.mark.parametrize(
    "parts",
    [
        [file_part(PDF_BYTES + b" ")],
        [file_part(filename="b.pdf")],
        [file_part(), file_part()],
        [file_part(), field_part("pages", "1")],
        [file_part(), field_part("metadata", '{"a": 1}')],
        [file_part(), field_part("ttl", "60")],
    ],
)
async def test_another_request_with_the_same_key_is_a_conflict(room: Room, parts: list[bytes]) -> None:
    first = await room.post(file_part())

    for _ in range(2):
        with pytest.raises(IdempotencyConflict):
            await room.post(*parts)
    assert ids(await room.post(file_part())) == ids(first) == list(await room.ids())


async def test_a_key_is_its_tenants_own(room: Room) -> None:
    first = await room.post(file_part())
    others = await room.post(file_part(PDF_BYTES + b" "), tenant="other")

    assert not others.replayed
    assert ids(first) != ids(others)


async def test_while_the_first_request_is_in_flight_the_second_is_told_so_before_its_body_is_read(room: Room) -> None:
    reading, more = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        reading.set()
        await more.wait()
        yield form(file_part())

    first = asyncio.create_task(room.upload(slow()))
    await reading.wait()
    with pytest.raises(IdempotencyInFlight):
        await room.upload(unreadable())
    more.set()

    assert ids(await first) == ids(await room.post(file_part())) == list(await room.ids())


async def test_of_many_equal_requests_at_once_one_makes_the_document(room: Room) -> None:
    answers = await asyncio.gather(*(room.post(file_part()) for _ in range(20)), return_exceptions=True)

    receipts = [answer for answer in answers if isinstance(answer, Receipt)]
    assert {type(answer) for answer in answers} <= {Receipt, IdempotencyInFlight}
    assert [receipt.replayed for receipt in receipts].count(False) == 1
    assert {item for receipt in receipts for item in ids(receipt)} == await room.ids()
    assert len(await room.ids()) == 1


@pytest.mark.parametrize("error", [DamagedPdf(), Busy()])
async def test_a_request_that_makes_no_document_leaves_the_key_free(room: Room, error: PagefleetError) -> None:
    room.inspector.error = error
    assert ids(await room.post(file_part())) == [type(error)]
    room.inspector.error = None

    mended = await room.post(file_part(PDF_BYTES + b" "))

    assert not mended.replayed
    assert ids(mended) == list(await room.ids())


@pytest.mark.parametrize(
    "parts", [[file_part(), field_part("priority", "high")], [file_part(PDF_BYTES + b"x" * MAX_FILE_BYTES)]]
)
async def test_a_request_that_is_refused_as_a_whole_leaves_the_key_free(room: Room, parts: list[bytes]) -> None:
    with pytest.raises((OptionInvalid, FileTooLarge)):
        await room.post(*parts)

    assert ids(await room.post(file_part())) == list(await room.ids())


async def test_a_client_that_leaves_leaves_the_key_free(room: Room) -> None:
    class ClientLeft(Exception):
        pass

    async def cut() -> AsyncIterator[bytes]:
        yield form(file_part())[:-20]
        raise ClientLeft

    with pytest.raises(ClientLeft):
        await room.upload(cut())

    assert ids(await room.post(file_part())) == list(await room.ids())


async def test_of_several_files_the_refused_ones_are_replayed_with_the_documents(room: Room) -> None:
    parts = [file_part(), file_part(b"just text"), file_part(b"")]
    first = await room.post(*parts)
    again = await room.post(*parts)

    assert (first.replayed, again.replayed) == (False, True)
    assert ids(first) == ids(again)
    assert {item for item in ids(first) if isinstance(item, str)} == await room.ids()
    refused, replayed = first.items[1], again.items[1]
    assert isinstance(refused, UnsupportedType)
    assert isinstance(replayed, UnsupportedType)
    assert replayed.problem() == refused.problem()


async def test_a_file_that_could_not_be_taken_now_is_taken_when_the_request_is_repeated(room: Room) -> None:
    parts = [file_part(filename="a.pdf"), file_part(filename="b.pdf")]
    room.inspector.errors = [None, Busy()]
    first = await room.post(*parts)
    again = await room.post(*parts)
    replay = await room.post(*parts)

    assert ids(first) == [ids(again)[0], Busy]
    assert set(ids(again)) == await room.ids()
    assert (again.replayed, replay.replayed, ids(replay)) == (False, True, ids(again))


async def test_a_gateway_that_died_between_two_files_has_made_no_document_that_is_made_again(room: Room) -> None:
    class Killed(BaseException):
        pass

    parts = [file_part(filename="a.pdf"), file_part(filename="b.pdf")]
    room.inspector.errors = [None, Killed()]
    with suppress(Killed):
        await room.post(*parts)
    (made,) = await room.ids()

    again = await room.post(*parts)

    assert ids(again)[0] == made
    assert set(ids(again)) == await room.ids()
    assert len(await room.ids()) == 2


async def test_a_request_whose_key_another_gateway_takes_over_makes_nothing(room: Room) -> None:
    taken = update(idempotency_keys).values(owner="another gateway", number=7)

    async def body() -> AsyncIterator[bytes]:
        yield form(file_part())
        await room.journal._database.write(lambda transaction: transaction.run(taken))

    with pytest.raises(IdempotencyInFlight):
        await room.upload(body())
    assert await room.ids() == set()


@pytest.mark.parametrize("header", [f'"{KEY}"', KEY])
def test_a_key_is_a_quoted_string_or_bare(header: str) -> None:
    assert idempotency_key(header) == KEY


def test_quotes_and_backslashes_in_a_quoted_key_are_escaped() -> None:
    assert idempotency_key(r'"a\"b\\c"') == r'a"b\c'
    assert idempotency_key('"a"b"') == '"a"b"'
    assert idempotency_key("x" * 255) == "x" * 255


@pytest.mark.parametrize("header", ["", '""', "x" * 256, "schlüssel", "a\tb", "a\x7f"])
async def test_a_header_that_is_no_key_is_refused_before_the_body_is_read(room: Room, header: str) -> None:
    with pytest.raises(OptionInvalid) as caught:
        await room.upload(unreadable(), header)
    assert caught.value.problem()["option"] == "Idempotency-Key"


async def test_a_fingerprint_tells_nothing_of_the_password(tmp_path: Path) -> None:
    file = Spool(tmp_path, "a.pdf", MAX_FILE_BYTES)
    await file.write(PDF_BYTES)
    await file.close()

    prints = {fingerprint_of(Options(password=password), [file]) for password in (None, "sesame", "open")}
    assert len(prints) == 1
