"""From an upload to documents: received, checked, stored, written to the journal."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

from uuid_utils import uuid7

from app.documents.options import Options
from app.documents.page_ranges import ALL_PAGES, parse_page_range
from app.documents.records import Document, NewDocument, Warn
from app.errors import EmptyFile, OptionInvalid, PagefleetError, ProfileUnknown
from app.intake.file_type import media_type
from app.intake.filename import clean_filename
from app.intake.reception import Reception
from app.intake.spool import Spool, sweep
from app.intake.upload import Upload
from app.journal.blobs import Blobs, blob_key
from app.settings import Settings
from app.telemetry.logs import get_logger
from app.telemetry.metrics import DOCUMENTS_ACCEPTED, DOCUMENTS_REFUSED

Accepted = Document | PagefleetError
"""What became of one file."""

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

    async def add_document(self, new: NewDocument) -> Document: ...


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

    async def sweep_spool(self) -> None:
        """Remove what a predecessor was receiving when it died. Only while this gateway holds the data directory."""
        removed = await asyncio.to_thread(sweep, self._settings.spool_dir)
        if removed:
            _log.info("spool_swept", files=removed)

    async def receive(self, upload: Upload, tenant: str = "default", *, single: bool = False) -> list[Accepted]:
        """Take in every file of one request: a document, or the reason against it, for each file in order.

        `single`: refuse a request with several files.

        Raises the `PagefleetError` that concerns the request as a whole: its form, its options, a file over the byte
        limit (the rest is not read), a store that is out of reach. Then, and when the client leaves before the body
        has ended, no document is made. Nothing stays in the spool.
        """
        with Reception(self._settings.spool_dir, self._settings.max_file_bytes) as reception:
            try:
                self._options(upload.query)  # a mistake here costs nobody the transfer
                await reception.read(upload)
                options = self._options({**upload.query, **reception.fields})
                if single and len(reception.files) > 1:
                    raise OptionInvalid("the answer can be a stream for one file only")
            except PagefleetError as error:
                _refused(error)
                raise
            return [await self._take(file, options, tenant) for file in reception.files]

    def _options(self, fields: Mapping[str, str]) -> Options:
        options = Options.parse(fields)
        if options.profile is not None and options.profile not in self._profiles:
            raise ProfileUnknown(f"unknown profile {options.profile!r}; known: {', '.join(sorted(self._profiles))}")
        return options

    async def _take(self, file: Spool, options: Options, tenant: str) -> Accepted:
        try:
            document = await self._store(file, await self._check(file, options, tenant))
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
            pages=parse_page_range(options.pages or ALL_PAGES, inspection.pages, self._settings.max_pages),
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

    async def _store(self, file: Spool, new: NewDocument) -> Document:
        await self._blobs.publish(file.path, new.blob_key)
        try:
            return await self._journal.add_document(new)
        except Exception:
            # Not on a cancellation: the row may be written then, and bytes without a row do less harm than the reverse.
            await self._blobs.delete(new.blob_key)
            raise


def _refused(error: PagefleetError) -> None:
    DOCUMENTS_REFUSED.labels(error.code()).inc()
    _log.info("document_refused", code=error.code())
