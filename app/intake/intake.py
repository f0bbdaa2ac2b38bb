"""From an upload to documents: received, checked, stored, written to the journal."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from uuid_utils import uuid7

from app.documents.options import Options
from app.documents.page_ranges import ALL_PAGES, parse_page_range
from app.documents.records import Document, NewDocument, Warn
from app.errors import (
    EmptyFile,
    Gone,
    IdempotencyConflict,
    IdempotencyInFlight,
    NotFound,
    OptionInvalid,
    PagefleetError,
    Problem,
    ProfileUnknown,
    StoreUnavailable,
)
from app.intake.file_type import media_type
from app.intake.filename import clean_filename
from app.intake.idempotency import fingerprint_of, idempotency_key
from app.intake.reception import Reception
from app.intake.spool import Spool, sweep
from app.intake.upload import Upload
from app.journal.blobs import Blobs, blob_key, discard
from app.journal.idempotency import Reservation, Slot
from app.settings import Settings
from app.telemetry.logs import get_logger
from app.telemetry.metrics import DOCUMENTS_ACCEPTED, DOCUMENTS_REFUSED

Accepted = Document | PagefleetError
"""What became of one file."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to an upload."""

    items: Sequence[Accepted]
    """What became of each file, in order; never empty."""
    replayed: bool = False
    """All of it was made by earlier requests with the same idempotency key. Documents are as they are now."""


_log = get_logger("intake")


class Inspection(Protocol):
    """What an inspector finds out about a file."""

    @property
    def pages(self) -> int: ...

    @property
    def warnings(self) -> tuple[Warn, ...]: ...


class Inspector(Protocol):
    """Opens files in a process that may die of them; `app.rendering` is one."""

    async def inspect(self, path: Path, media_type: str, password: str | None) -> Inspection: ...


class DocumentWriter(Protocol):
    """The part of the journal that intake needs."""

    async def add_document(self, new: NewDocument, slot: Slot | None = None) -> Document: ...

    async def document(self, document_id: str, tenant: str | None = None) -> Document: ...

    def reserve(self, tenant: str, key: str) -> AbstractAsyncContextManager[Reservation]: ...

    async def complete(self, reservation: Reservation, refusals: Mapping[int, Problem]) -> None: ...


class Intake:
    """Takes uploads in. A document is in the journal only after its bytes are safe in the blob store."""

    def __init__(
        self,
        settings: Settings,
        journal: DocumentWriter,
        blobs: Blobs,
        inspector: Inspector,
        profiles: Collection[str],
        resolve_profile: Callable[[], str | None],
    ) -> None:
        """`profiles`: the names that a caller may give; `resolve_profile`: the one that `auto` means now, if known."""
        self._settings = settings
        self._journal = journal
        self._blobs = blobs
        self._inspector = inspector
        self._profiles = profiles
        self._resolve_profile = resolve_profile
        # A document of more pages than the queue holds could wait for ever.
        self._max_pages = min(settings.max_pages, settings.max_queued_pages)

    async def sweep_spool(self) -> None:
        """Remove what a predecessor was receiving when it died. Only while this gateway holds the data directory."""
        removed = await asyncio.to_thread(sweep, self._settings.spool_dir)
        if removed:
            _log.info("spool_swept", files=removed)

    async def receive(self, upload: Upload, tenant: str = "default", *, single: bool = False) -> Receipt:
        """Take in every file of one request: a document, or the reason against it, for each file in order.

        `single`: refuse a request with several files.

        Raises the `PagefleetError` that concerns the request as a whole: its form, its options, a file over the byte
        limit (the rest is not read), a store that is out of reach, its idempotency key: `IdempotencyInFlight` before
        the body is read, `IdempotencyConflict` behind it. Then, and when the client leaves before the body has ended,
        no document is made. Nothing stays in the spool.

        `IdempotencyInFlight` also where another gateway has taken this one for dead and its key over, meanwhile: the
        documents made by then are noted with the key, and the repeated request gets them.
        """
        async with AsyncExitStack() as stack:
            reception = stack.enter_context(Reception(self._settings.spool_dir, self._settings.max_file_bytes))
            try:
                self._options(upload.query)  # a mistake here costs nobody the transfer
                reservation = await self._reserve(upload, tenant, stack)
                await reception.read(upload)
                options = self._options({**upload.query, **reception.fields})
                if single and len(reception.files) > 1:
                    raise OptionInvalid("the answer can be a stream for one file only")
                if reservation is not None:
                    return await self._take_once(reception.files, options, tenant, reservation)
            except PagefleetError as error:
                _refused(error)
                raise
            return Receipt([await self._take(file, options, tenant) for file in reception.files])

    async def _take_once(
        self, files: Sequence[Spool], options: Options, tenant: str, reservation: Reservation
    ) -> Receipt:
        """Take what no earlier request with the key has taken. Raises `IdempotencyConflict`, `IdempotencyInFlight`."""
        fingerprint = fingerprint_of(options, files)
        if reservation.fingerprint not in (None, fingerprint):
            raise IdempotencyConflict()
        slots = [Slot(reservation, index, fingerprint) for index in range(len(files))]
        items = [
            await self._take_or_recall(file, options, tenant, slot) for file, slot in zip(files, slots, strict=True)
        ]
        await self._keep(items, reservation)
        return Receipt(items, replayed=len(reservation.results) == len(items))

    async def _take_or_recall(self, file: Spool, options: Options, tenant: str, slot: Slot) -> Accepted:
        made = slot.reservation.results.get(slot.index)
        if made is None:
            return await self._take(file, options, tenant, slot)
        if not isinstance(made, str):
            return PagefleetError.of(made)
        try:
            return await self._journal.document(made, tenant)
        except (NotFound, Gone):
            return Gone("the document that was made with this idempotency key was erased")

    async def _keep(self, items: Sequence[Accepted], reservation: Reservation) -> None:
        """Keep the answer, unless it says to come again or has no document: what was wrong with it can be mended then,
        and the key used again.
        """
        refused = {index: item for index, item in enumerate(items) if isinstance(item, PagefleetError)}
        refusals = {index: error for index, error in refused.items() if index not in reservation.results}
        comes_again = any(error.retryable for error in refusals.values())
        if not (reservation.answered or comes_again or len(refusals) == len(items)):
            await self._journal.complete(reservation, {index: error.problem() for index, error in refusals.items()})

    async def _reserve(self, upload: Upload, tenant: str, stack: AsyncExitStack) -> Reservation | None:
        """Hold the upload's idempotency key, if it has one, as long as `stack`."""
        key = idempotency_key(upload.idempotency_key)
        return None if key is None else await stack.enter_async_context(self._journal.reserve(tenant, key))

    def _options(self, fields: Mapping[str, str]) -> Options:
        options = Options.parse(fields)
        if options.profile is not None and options.profile not in self._profiles:
            raise ProfileUnknown(f"unknown profile {options.profile!r}; known: {', '.join(sorted(self._profiles))}")
        return options

    async def _take(self, file: Spool, options: Options, tenant: str, slot: Slot | None = None) -> Accepted:
        try:
            document = await self._store(file, await self._check(file, options, tenant), slot)
        except IdempotencyInFlight:
            raise  # the key was lost to another gateway, and with it the request
        except PagefleetError as error:
            _refused(error)
            return error
        DOCUMENTS_ACCEPTED.inc()
        _log.info("document_accepted", document_id=document.id, bytes=document.bytes, pages=document.counts.total)
        return document

    async def _check(self, file: Spool, options: Options, tenant: str) -> NewDocument:
        if file.bytes == 0:
            raise EmptyFile()
        file_type = media_type(file.head)
        inspection = await self._inspector.inspect(file.path, file_type, options.password)
        document_id = str(uuid7())
        return NewDocument(
            id=document_id,
            tenant=tenant,
            filename=clean_filename(file.filename),
            media_type=file_type,
            bytes=file.bytes,
            sha256=file.sha256,
            blob_key=blob_key(tenant, document_id),
            pages=parse_page_range(options.pages or ALL_PAGES, inspection.pages, self._max_pages),
            profile=self._profile(options),
            priority=options.priority,
            password=options.password,
            metadata=options.metadata,
            warnings=inspection.warnings,
            ttl_seconds=options.ttl or self._settings.ttl_seconds,
            on_page_error=options.on_page_error,
        )

    def _profile(self, options: Options) -> str | None:
        """None: no lane is known yet, so the first claim decides."""
        if options.profile is not None:
            return options.profile
        return self._resolve_profile() if self._settings.profile == "auto" else self._settings.profile

    async def _store(self, file: Spool, new: NewDocument, slot: Slot | None) -> Document:
        deadline = time.monotonic() + self._settings.orphan_seconds / 2
        await self._blobs.publish(file.path, new.blob_key)
        if time.monotonic() > deadline:  # the bytes might be taken for orphans while the row is being written
            await discard(self._blobs, new.blob_key)
            raise StoreUnavailable("the file can't be stored: it took too long")
        try:
            return await self._journal.add_document(new, slot)
        except StoreUnavailable:
            # The row may be written, as on a cancellation, and bytes without a row do less harm than the reverse.
            raise
        except PagefleetError:
            await discard(self._blobs, new.blob_key)
            raise


def _refused(error: PagefleetError) -> None:
    DOCUMENTS_REFUSED.labels(error.code()).inc()
    _log.info("document_refused", code=error.code())
