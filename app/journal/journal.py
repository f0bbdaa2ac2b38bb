"""The journal: the durable truth about documents and pages."""

from collections.abc import Collection, Sequence
from typing import Self
from uuid import uuid4

from app.documents.records import Claim, Document, Event, NewDocument, Page, PageOutcome
from app.documents.states import DocumentState
from app.errors import StartError, StoreUnavailable
from app.journal.admission import Admission
from app.journal.cancels import Cancels
from app.journal.changes import Changes
from app.journal.claims import Claims
from app.journal.commits import Commit, Commits
from app.journal.database import Database
from app.journal.datadir import DataDir
from app.journal.group_commit import GroupCommit
from app.journal.migrate import migrate
from app.journal.reads import Reads
from app.journal.releases import Releases, free_claims
from app.journal.retention import sweep
from app.journal.retries import Retries
from app.settings import Settings
from app.telemetry.metrics import PAGES_QUEUED


class Journal:
    """One gateway's journal. Every method raises `StoreUnavailable` where the database can't be reached.

    Whoever calls a method that writes and is cancelled meanwhile leaves the transaction to its end: the pages of a
    cancelled `claim` may stay claimed until the next start.
    """

    def __init__(self, settings: Settings, data_dir: DataDir) -> None:
        owner = uuid4().hex
        self.changes = Changes()
        self._data_dir = data_dir
        self._database = Database(settings.database_path)
        self._admission = Admission(self.changes, settings.max_queued_pages)
        self._claims = Claims(owner, settings.claim_seconds)
        self._releases = Releases(self.changes, owner)
        self._cancels = Cancels(self.changes)
        self._retries = Retries(self.changes, settings.max_queued_pages)
        self._commits = Commits(self.changes, owner)
        self._group_commit = GroupCommit[Commit, bool](self._commit_group)
        self._reads = Reads(self._database)

    @classmethod
    async def open(cls, settings: Settings) -> Self:
        """Lock the data directory, bring the schema up to date and free the claims of the last gateway.

        Raises `StartError`: the directory is in use or can't be used, the database is damaged, locked or newer.
        """
        journal = cls(settings, DataDir.lock(settings.data_dir))
        try:
            await journal._start()
        except BaseException:
            await journal.close()
            raise
        return journal

    async def _start(self) -> None:
        try:
            await self._database.write(lambda transaction: migrate(transaction.connection))
            await self._database.write(free_claims)
            PAGES_QUEUED.set(await self.queue_depth())
        except StoreUnavailable as error:
            raise StartError(f"the journal in {self._data_dir.path} can't be opened: {error.detail}") from error

    async def close(self) -> None:
        """Write what was submitted, then close the database and unlock the data directory."""
        await self._group_commit.drain()
        await self._database.close()
        self._data_dir.unlock()

    async def ping(self) -> None:
        """Raises `StoreUnavailable`."""
        await self._reads.queue_depth()

    async def add_document(self, new: NewDocument) -> Document:
        """Write a document, its pages and its first event; raises `QueueFull`."""
        return await self._database.write(lambda transaction: self._admission.add(transaction, new))

    async def claim(self, limit: int, profiles: Sequence[str], without: Collection[str] = ()) -> list[Claim]:
        """Claim up to `limit` pages, fairly, in the order in which they should be read.

        Only documents of one of `profiles` give pages, and those that have no profile yet: they get the first of
        `profiles` for good. Documents whose ids are in `without` are passed over.
        """
        if limit < 1 or not profiles:
            return []
        return await self._database.write(lambda transaction: self._claims.claim(transaction, limit, profiles, without))

    async def commit(self, claim: Claim, outcome: PageOutcome) -> bool:
        """End a claimed page: its row, the document's counters, the events and, with the last page, the end.

        False where the claim no longer holds: cancelled, handed back, committed already. Safe to repeat.
        """
        return await self._group_commit.submit((claim, outcome))

    async def _commit_group(self, group: Sequence[Commit]) -> list[bool]:
        return await self._database.write(lambda transaction: self._commits.commit(transaction, group))

    async def release(self, claim: Claim, *, attempts: int, not_before_seconds: float = 0) -> bool:
        """Hand a page back unread, with the `attempts` charged to it so far; it can be claimed again in
        `not_before_seconds`. False where the claim no longer holds.
        """
        return await self._database.write(
            lambda transaction: self._releases.release(transaction, claim, attempts, not_before_seconds)
        )

    async def cancel(self, document_id: str, tenant: str | None = None) -> Document:
        """Cancel all pages that have not ended; a document that has ended stays as it is.

        Raises `NotFound` and `Gone`.
        """
        return await self._database.write(lambda transaction: self._cancels.cancel(transaction, document_id, tenant))

    async def delete(self, document_id: str, tenant: str | None = None) -> str:
        """Cancel and erase a document; the key of its blob, to be erased next. Raises `NotFound` and `Gone`."""
        return await self._database.write(lambda transaction: self._cancels.delete(transaction, document_id, tenant))

    async def retry(self, document_id: str, tenant: str | None = None) -> Document:
        """Queue the failed pages again, with no attempt charged, and those that `on_page_error=fail` cancelled.

        Raises `NotFound`, `Gone`, `QueueFull`, and `NotRetryable` where no page has failed or its user cancelled.
        """
        return await self._database.write(lambda transaction: self._retries.retry(transaction, document_id, tenant))

    async def sweep(self, limit: int = 100) -> list[str]:
        """Erase documents whose time to live is over; the keys of their blobs, to be erased next.

        At most `limit` at a time, and fewer where they have many pages: there may be more until none is returned. For
        seven days the erased documents are `Gone` rather than `NotFound`.
        """
        return await self._database.write(lambda transaction: sweep(transaction, self.changes, limit))

    async def document(self, document_id: str, tenant: str | None = None) -> Document:
        """Raises `NotFound`, also for another tenant's document, and `Gone`."""
        return await self._reads.document(document_id, tenant)

    async def list_documents(
        self, tenant: str, *, state: DocumentState | None = None, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[Document], str | None]:
        """At most `limit` (from 1) documents, newest first, and the cursor for those that follow, if any do.

        Raises `CursorInvalid`.
        """
        return await self._reads.list_documents(tenant, state, limit, cursor)

    async def events(self, document_id: str, after: int = 0, limit: int = 100) -> list[Event]:
        """At most `limit` events with a `seq` above `after`, ascending; none for a document that isn't there."""
        return await self._reads.events(document_id, after, limit)

    async def pages(self, document_id: str, after: int = 0, limit: int = 100) -> list[Page]:
        """At most `limit` pages in any state with a number above `after`, ascending."""
        return await self._reads.pages(document_id, after, limit)

    async def page(self, document_id: str, number: int, tenant: str | None = None) -> Page:
        """Raises `NotFound`, also for a page that was not asked for, and `Gone`."""
        return await self._reads.page(document_id, number, tenant)

    async def queue_depth(self) -> int:
        """Pages queued, of all documents."""
        return await self._reads.queue_depth()

    async def blob_keys(self) -> set[str]:
        """Blob keys of all documents."""
        return await self._reads.blob_keys()
