"""From request bodies to documents, with a journal and an inspector that keep to memory."""

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from app.documents.records import Counts, Document, NewDocument, Warn
from app.documents.states import DocumentState
from app.errors import (
    DamagedPdf,
    EmptyFile,
    FileMissing,
    FileTooLarge,
    MultipartInvalid,
    OptionInvalid,
    OptionUnknown,
    PagefleetError,
    PageRangeInvalid,
    PasswordRequired,
    Problem,
    ProfileUnknown,
    QueueFull,
    StoreUnavailable,
    TooManyPages,
    UnsupportedType,
)
from app.intake import Accepted, Intake, Upload
from app.journal.blobs import FolderBlobs
from app.journal.idempotency import Reservation, Slot
from app.settings import Settings
from tests.blobs import keys_of
from tests.unit.intake.bodies import BOUNDARY, FORM, PDF_BYTES, chunks, field_part, file_part, form, part

MAX_FILE_BYTES = 100_000


@dataclass(frozen=True)
class Inspection:
    pages: int
    warnings: tuple[Warn, ...] = ()


@dataclass
class Inspector:
    """Finds `pages` pages in whatever it gets; raises `error`, or the next of `errors`, if there is one; `secret` opens
    encrypted files.
    """

    pages: int = 3
    secret: str | None = None
    error: PagefleetError | None = None
    errors: list[BaseException | None] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)

    async def inspect(self, path: Path, media_type: str, password: str | None) -> Inspection:
        self.seen.append(path.read_bytes())
        error = self.errors.pop(0) if self.errors else self.error
        if error is not None:
            raise error
        if password != self.secret:
            raise PasswordRequired()
        return Inspection(self.pages, (Warn("repaired", "the file was damaged"),))


@dataclass
class Journal:
    """Keeps new documents; raises `error` if there is one."""

    error: BaseException | None = None
    added: list[NewDocument] = field(default_factory=list)

    async def add_document(self, new: NewDocument, slot: Slot | None = None) -> Document:
        assert slot is None
        if self.error is not None:
            raise self.error
        self.added.append(new)
        return Document(
            id=new.id,
            tenant=new.tenant,
            state=DocumentState.QUEUED,
            filename=new.filename,
            media_type=new.media_type,
            bytes=new.bytes,
            sha256=new.sha256,
            blob_key=new.blob_key,
            profile=new.profile,
            priority=new.priority,
            counts=Counts(total=len(new.pages), queued=len(new.pages)),
            seq=1,
            retries=0,
            created_at=datetime.now(UTC),
            started_at=None,
            ended_at=None,
            expires_at=None,
            metadata=new.metadata,
            warnings=new.warnings,
            error=None,
        )

    async def document(self, document_id: str, tenant: str | None = None) -> Document:
        raise AssertionError("no key was given, so nothing is recalled")

    def reserve(self, tenant: str, key: str) -> AbstractAsyncContextManager[Reservation]:
        raise AssertionError("no key was given")

    async def complete(self, reservation: Reservation, refusals: Mapping[int, Problem]) -> None:
        raise AssertionError("no key was given")


class Room:
    """An intake with everything around it."""

    def __init__(
        self,
        data_dir: Path,
        profile: str = "auto",
        resolved: str | None = None,
        max_queued_pages: int = 1000,
        orphan_seconds: float = 3600,
    ) -> None:
        self.settings = Settings(
            data_dir=data_dir,
            max_file_bytes=MAX_FILE_BYTES,
            max_pages=50,
            max_queued_pages=max_queued_pages,
            orphan_seconds=orphan_seconds,
            profile=profile,
        )
        self.journal = Journal()
        self.inspector = Inspector()
        self.blobs = FolderBlobs(self.settings.blob_dir)
        self.intake = Intake(
            self.settings,
            self.journal,
            self.blobs,
            self.inspector,
            ("cpu", "generic"),
            resolve_profile=lambda: resolved,
        )

    async def form(
        self, *parts: bytes, query: Mapping[str, str] | None = None, chunk_size: int = 65_536
    ) -> Sequence[Accepted]:
        return await self.body(form(*parts), query, chunk_size)

    async def body(
        self, body: bytes, query: Mapping[str, str] | None = None, chunk_size: int = 65_536
    ) -> Sequence[Accepted]:
        return (await self.intake.receive(Upload(chunks(body, chunk_size), query or {}, content_type=FORM))).items

    async def raw(
        self,
        body: bytes,
        query: Mapping[str, str] | None = None,
        content_type: str | None = "application/x-www-form-urlencoded",
        content_disposition: str | None = None,
    ) -> Sequence[Accepted]:
        upload = Upload(chunks(body), query or {}, content_type, content_disposition)
        return (await self.intake.receive(upload)).items

    def spooled(self) -> list[Path]:
        return list(self.settings.spool_dir.glob("*"))

    async def assert_untouched(self) -> None:
        assert self.journal.added == []
        assert await keys_of(self.blobs) == []
        assert self.spooled() == []


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def only(results: Sequence[Accepted]) -> Document:
    (document,) = results
    assert isinstance(document, Document)
    return document


async def test_a_form_with_a_file_becomes_a_document_whose_bytes_are_stored(room: Room) -> None:
    document = only(await room.form(file_part(filename="report.pdf")))

    assert (document.filename, document.media_type, document.bytes) == ("report.pdf", "application/pdf", len(PDF_BYTES))
    assert document.sha256 == hashlib.sha256(PDF_BYTES).hexdigest()
    assert document.warnings == (Warn("repaired", "the file was damaged"),)
    assert room.inspector.seen == [PDF_BYTES]
    assert room.journal.added[0].pages == (1, 2, 3)
    assert room.journal.added[0].ttl_seconds == room.settings.ttl_seconds
    async with room.blobs.local(document.blob_key) as path:
        assert path.read_bytes() == PDF_BYTES
    assert room.spooled() == []


async def test_ids_are_uuid_7_in_order_of_arrival(room: Room) -> None:
    ids = [only(await room.form(file_part())).id for _ in range(3)]

    assert ids == sorted(ids)
    assert {document_id[14] for document_id in ids} == {"7"}


@pytest.mark.parametrize("chunk_size", [1, 7, 61])
async def test_a_form_in_tiny_chunks_is_the_same_document(room: Room, chunk_size: int) -> None:
    body = form(field_part("pages", "2-3"), file_part(), field_part("priority", "1"), preamble=b"hello\r\n")
    document = only(await room.body(body, chunk_size=chunk_size))

    assert document.sha256 == hashlib.sha256(PDF_BYTES).hexdigest()
    assert (document.counts.total, document.priority) == (2, 1)


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "application/octet-stream", ";"])
async def test_any_other_body_is_the_file_itself(room: Room, content_type: str | None) -> None:
    document = only(await room.raw(PDF_BYTES, content_type=content_type))

    assert (document.filename, document.sha256) == ("document", hashlib.sha256(PDF_BYTES).hexdigest())


async def test_a_raw_body_is_named_by_its_content_disposition(room: Room) -> None:
    raw_utf8 = 'attachment; filename="発注書.pdf"'.encode().decode("latin-1")
    assert only(await room.raw(PDF_BYTES, content_disposition=raw_utf8)).filename == "発注書.pdf"


async def test_file_names_are_kept_as_text_and_never_as_paths(room: Room, tmp_path: Path) -> None:
    named = only(await room.form(file_part(filename="発注書 №7 📄.pdf")))
    climbing = only(await room.form(file_part(filename="../../../../tmp/ocr-escape\\\\..\\\\x.pdf")))
    unnamed = only(await room.form(part('name="file"', PDF_BYTES)))

    assert [named.filename, climbing.filename, unnamed.filename] == ["発注書 №7 📄.pdf", "x.pdf", "document"]
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"source"}


async def test_characters_that_are_no_text_are_taken_out_of_a_file_name(room: Room) -> None:
    disposition = "attachment; filename*=UTF-8''a%00b%ED%A0%80%0Ac.pdf"
    name = only(await room.raw(PDF_BYTES, content_disposition=disposition)).filename

    assert name.startswith("ab")
    assert name.endswith(" c.pdf")
    assert "\0" not in name
    assert name.encode().decode() == name


async def test_several_files_give_one_result_each_in_order(room: Room) -> None:
    first, second, third = await room.form(
        file_part(filename="a.pdf"), file_part(b"just text", filename="b.pdf"), file_part(filename="c.pdf")
    )

    assert isinstance(first, Document)
    assert first.filename == "a.pdf"
    assert isinstance(second, UnsupportedType)
    assert isinstance(third, Document)
    assert third.filename == "c.pdf"
    assert len(await keys_of(room.blobs)) == 2
    assert room.spooled() == []


async def test_options_come_from_the_form_else_from_the_query(room: Room) -> None:
    await room.form(
        field_part("pages", "r1"),
        file_part(),
        field_part("metadata", '{"case": 7}'),
        query={"pages": "1", "profile": "cpu", "priority": "5"},
    )

    (new,) = room.journal.added
    assert (new.pages, new.profile, new.priority, new.metadata) == ((3,), "cpu", 5, {"case": 7})


async def test_a_raw_body_takes_its_options_from_the_query(room: Room) -> None:
    room.inspector.secret = "sesame"
    await room.raw(PDF_BYTES, query={"pages": "1-2", "password": "sesame"})

    (new,) = room.journal.added
    assert (new.pages, new.password) == ((1, 2), "sesame")


@pytest.mark.parametrize(
    ("setting", "resolved", "asked", "profile"),
    [
        ("auto", None, None, None),
        ("auto", "generic", None, "generic"),
        ("auto", "generic", "auto", "generic"),
        ("auto", "generic", "cpu", "cpu"),
        ("cpu", "generic", None, "cpu"),
        ("cpu", "generic", "generic", "generic"),
    ],
)
async def test_the_profile_is_the_one_asked_for_else_the_setting_else_what_the_lanes_serve(
    tmp_path: Path, setting: str, resolved: str | None, asked: str | None, profile: str | None
) -> None:
    room = Room(tmp_path, setting, resolved)
    assert only(await room.raw(PDF_BYTES, query={"profile": asked} if asked else {})).profile == profile


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", EmptyFile),
        (b"just text called .pdf", UnsupportedType),
        (b"PK\x03\x04 a letter", UnsupportedType),
    ],
)
async def test_a_file_of_no_type_that_is_read_is_refused_before_it_is_opened(
    room: Room, data: bytes, error: type[PagefleetError]
) -> None:
    (refusal,) = await room.form(file_part(data))

    assert type(refusal) is error
    assert room.inspector.seen == []
    await room.assert_untouched()


@pytest.mark.parametrize(
    ("pages", "error"),
    [("51-60", PageRangeInvalid), ("1-x", PageRangeInvalid), ("1-51,60", TooManyPages), ("", TooManyPages)],
)
async def test_the_pages_asked_for_must_exist_and_be_within_the_limit(
    tmp_path: Path, pages: str, error: type[PagefleetError]
) -> None:
    room = Room(tmp_path)
    room.inspector.pages = 50 if error is PageRangeInvalid else 1_000_000_000
    (refusal,) = await room.form(file_part(), field_part("pages", pages))

    assert type(refusal) is error
    await room.assert_untouched()


async def test_a_part_of_a_file_over_the_page_limit_is_accepted(room: Room) -> None:
    room.inspector.pages = 1_000_000_000
    assert only(await room.form(file_part(), field_part("pages", "7,r1"))).counts.total == 2


async def test_more_pages_than_the_queue_ever_holds_are_too_many_rather_than_too_many_now(tmp_path: Path) -> None:
    room = Room(tmp_path, max_queued_pages=20)
    room.inspector.pages = 21
    (refusal,) = await room.form(file_part())

    assert isinstance(refusal, TooManyPages)
    assert refusal.problem()["limit"] == 20
    assert only(await room.form(file_part(), field_part("pages", "1-20"))).counts.total == 20


async def test_what_the_inspector_refuses_is_refused(room: Room) -> None:
    room.inspector.error = DamagedPdf()

    assert await room.form(file_part()) == [room.inspector.error]
    await room.assert_untouched()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (form(file_part(field="document")), FileMissing),
        (form(field_part("pages", "1")), FileMissing),
        (form(), FileMissing),
        (form(file_part())[:-60], MultipartInvalid),
        (b"garbage", MultipartInvalid),
        (form(file_part(), field_part("colour", "red")), OptionUnknown),
        (form(file_part(), field_part("priority", "9" * 9000)), OptionInvalid),
        (form(file_part(), field_part("metadata", '{"a": NaN}')), OptionInvalid),
        (form(file_part(), field_part("metadata", '{"a": "\\ud83d"}')), OptionInvalid),
        (form(file_part(), field_part("metadata", '{"a": "\\u0000"}')), OptionInvalid),
        (form(file_part(), field_part("password", "a\0b")), OptionInvalid),
        pytest.param(
            form(file_part(), field_part("metadata", '{"a": ' + "[" * 2000 + "]" * 2000 + "}")),
            OptionInvalid,
            marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="newer Pythons read it, and write it again"),
        ),
        (form(file_part(), field_part("pages", "1"), field_part("pages", "2")), OptionInvalid),
        (form(file_part(), field_part("password", "x" * 70_000)), OptionInvalid),
        (form(file_part(), part('name="password"', b"\xff\xfe")), OptionInvalid),
        (form(file_part(), field_part("profile", "magic")), ProfileUnknown),
        (form(file_part(), file_part(PDF_BYTES + b"x" * MAX_FILE_BYTES)), FileTooLarge),
    ],
)
@pytest.mark.parametrize("chunk_size", [1021, 1_000_000])
async def test_a_request_at_fault_is_refused_as_a_whole_and_leaves_nothing(
    room: Room, body: bytes, error: type[PagefleetError], chunk_size: int
) -> None:
    with pytest.raises(error):
        await room.body(body, chunk_size=chunk_size)

    await room.assert_untouched()


async def test_a_file_in_a_wrong_field_is_told_the_right_one(room: Room) -> None:
    with pytest.raises(FileMissing, match="'document' holds a file; send files in the field 'file'"):
        await room.form(file_part(field="document"))


async def test_a_form_without_a_boundary_is_refused(room: Room) -> None:
    with pytest.raises(MultipartInvalid, match="boundary"):
        await room.raw(form(file_part()), content_type="multipart/form-data")

    await room.assert_untouched()


@pytest.mark.parametrize(("content_type", "error"), [(None, FileMissing), ("application/pdf", EmptyFile)])
async def test_an_empty_body_is_no_file_or_an_empty_one(
    room: Room, content_type: str | None, error: type[PagefleetError]
) -> None:
    with pytest.raises(error):
        await room.raw(b"", content_type=content_type)

    await room.assert_untouched()


@pytest.mark.parametrize("query", [{"colour": "red"}, {"profile": "magic"}, {"priority": "high"}])
@pytest.mark.parametrize("content_type", [FORM, "application/pdf"])
async def test_a_mistake_in_the_query_is_told_before_the_body_is_read(
    room: Room, query: dict[str, str], content_type: str
) -> None:
    with pytest.raises((OptionUnknown, OptionInvalid, ProfileUnknown)):
        await room.intake.receive(Upload(unreadable(), query, content_type))

    await room.assert_untouched()


async def unreadable() -> AsyncIterator[bytes]:
    pytest.fail("the body was read")
    yield b""


async def test_a_stated_length_over_the_limit_is_refused_before_the_body_is_read(room: Room) -> None:
    with pytest.raises(FileTooLarge):
        await room.intake.receive(Upload(unreadable(), {}, content_length=MAX_FILE_BYTES + 1))


@pytest.mark.parametrize("content_type", [FORM, "application/pdf"])
async def test_a_chunked_body_is_not_read_far_past_the_limit(room: Room, content_type: str) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        head = form(file_part())[: -len(BOUNDARY) - 8] if content_type == FORM else PDF_BYTES
        yield head
        while True:
            read += 1000
            yield b"x" * 1000

    with pytest.raises(FileTooLarge) as caught:
        await room.intake.receive(Upload(endless(), {}, content_type))

    assert caught.value.problem()["limit"] == MAX_FILE_BYTES
    assert read < 1.1 * MAX_FILE_BYTES
    await room.assert_untouched()


@pytest.mark.parametrize("content_type", [FORM, "application/pdf"])
async def test_a_client_that_leaves_leaves_nothing(room: Room, content_type: str) -> None:
    class ClientLeft(Exception):
        pass

    async def cut() -> AsyncIterator[bytes]:
        yield form(file_part(b"%PDF-" + b"x" * 90_000))[:80_000]
        assert len(room.spooled()) == 1
        raise ClientLeft

    with pytest.raises(ClientLeft):
        await room.intake.receive(Upload(cut(), {}, content_type))

    await room.assert_untouched()


async def test_a_cancelled_upload_leaves_nothing(room: Room) -> None:
    waiting = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield PDF_BYTES
        waiting.set()
        await asyncio.Event().wait()

    receiving = asyncio.create_task(room.intake.receive(Upload(slow(), {})))
    await waiting.wait()
    assert len(room.spooled()) == 1
    receiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiving

    await room.assert_untouched()


async def test_a_document_that_the_journal_refuses_leaves_no_bytes(room: Room) -> None:
    room.journal.error = QueueFull()

    assert await room.form(file_part()) == [room.journal.error]
    await room.assert_untouched()


async def test_an_upload_that_took_so_long_that_its_bytes_look_orphaned_is_refused(tmp_path: Path) -> None:
    room = Room(tmp_path, orphan_seconds=1e-6)

    (error,) = await room.form(file_part())

    assert isinstance(error, StoreUnavailable)
    await room.assert_untouched()


@pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError(), StoreUnavailable("the database does not answer"), RuntimeError("broken")],
    ids=["cancelled", "away", "broken"],
)
async def test_bytes_stay_where_it_is_open_whether_the_row_was_written(room: Room, error: BaseException) -> None:
    room.journal.error = error

    if isinstance(error, StoreUnavailable):
        assert await room.form(file_part()) == [error]
    else:
        with pytest.raises(type(error)):
            await room.form(file_part())

    assert len(await keys_of(room.blobs)) == 1
    assert room.spooled() == []


async def test_each_tenant_has_its_own_folder(room: Room) -> None:
    await room.intake.receive(Upload(chunks(PDF_BYTES), {}), tenant="acme")

    assert room.journal.added[0].tenant == "acme"
    assert (await keys_of(room.blobs))[0].startswith("v1/acme/")


async def test_leftovers_of_a_dead_predecessor_are_swept(room: Room) -> None:
    room.settings.spool_dir.mkdir(parents=True)
    (room.settings.spool_dir / "1.part").touch()

    await room.intake.sweep_spool()

    assert room.spooled() == []


async def test_accepted_and_refused_uploads_are_counted(room: Room) -> None:
    def counts() -> list[float]:
        accepted = REGISTRY.get_sample_value("pagefleet_documents_accepted_total") or 0
        refused = "pagefleet_documents_refused_total"
        codes = ("empty_file", "option_unknown")
        return [accepted, *(REGISTRY.get_sample_value(refused, {"code": code}) or 0 for code in codes)]

    before = counts()
    await room.form(file_part(), file_part(b""), file_part())
    with pytest.raises(OptionUnknown):
        await room.form(file_part(), field_part("colour", "red"))

    assert [after - old for after, old in zip(counts(), before, strict=True)] == [2, 1, 1]


async def test_documents_received_at_once_do_not_mix(room: Room) -> None:
    bodies = [PDF_BYTES + bytes([number]) * 50_000 for number in range(8)]
    results = await asyncio.gather(*(room.body(form(file_part(body)), chunk_size=997) for body in bodies))

    assert [only(result).sha256 for result in results] == [hashlib.sha256(body).hexdigest() for body in bodies]
