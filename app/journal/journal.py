"""The journal: the durable truth about documents and pages."""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Self
from uuid import uuid4

from app.documents.records import Capacity, Claim, Document, Event, NewDocument, Outlook, Page, PageOutcome
from app.documents.states import DocumentState
from app.errors import Problem, StartError, StoreUnavailable
from app.journal.admission import Admission
from app.journal.beats import Beats
from app.journal.cancels import Cancels
from app.journal.changes import Changes
from app.journal.claims import Claims
from app.journal.commits import Commit, Commits
from app.journal.database import Database, Driver, Transaction
from app.journal.datadir import DataDir
from app.journal.group_commit import GroupCommit
from app.journal.idempotency import IdempotencyKeys, Reservation, Slot
from app.journal.migrate import migrate
from app.journal.outlook import Outlooks
from app.journal.peers import Peers
from app.journal.postgres import PostgresDriver
from app.journal.queueing import QueueLimit
from app.journal.reads import Reads
from app.journal.releases import Release, Releases, is_one_of
from app.journal.retention import sweep
from app.journal.retries import Retries
from app.journal.sqlite import SqliteDriver
from app.settings import Settings


class Journal:
    """One gateway's journal. Every method raises `StoreUnavailable` where the database can't be reached.

    Whoever calls a method that writes and is cancelled meanwhile leaves the transaction to its end: the pages of a
    cancelled `claim` stay claimed until `rejoin`.
    """

    def __init__(self, settings: Settings, data_dir: DataDir) -> None:
        """Raises `StartError` where the database URL can't be used."""
        self.owner = uuid4().hex
        """This gateway, as claims name it."""
        self.changes = Changes()
        self.peers = Peers(self.owner)
        self._data_dir = data_dir
        driver: Driver = (
            SqliteDriver(settings.database_path)
            if settings.database_url is None
            else PostgresDriver(settings.database_url)
        )
        self._database = Database(driver)
        limit = QueueLimit(settings.max_queued_pages, self.peers)
        self._admission = Admission(self.changes, limit)
        self._keys = IdempotencyKeys(self._database, self.owner, settings.idempotency_seconds)
        self._claims = Claims(self.owner)
        self._releases = Releases(self.changes, self.owner)
        self._cancels = Cancels(self.changes)
        self._retries = Retries(self.changes, limit)
        self._commits = Commits(self.changes, self.owner)
        self._group_commit = GroupCommit[Commit, bool](self._commit_group)
        self._group_release = GroupCommit[Release, bool](self._release_group)
        self._reads = Reads(self._database)
        self._outlooks = Outlooks(self._database, self.peers)
        self._beats = Beats(self._database, self.changes, self.peers, self._releases, settings.claim_seconds)
        self._notifications = None
        if settings.database_url is not None:
            from app.journal.notifications import Notifications  # needs psycopg, which SQLite does not

            self._notifications = Notifications(settings.database_url, self.owner, self._database, self.changes)

    @classmethod
    async def open(cls, settings: Settings) -> Self:
        """Lock the data directory, bring the schema up to date and take this gateway's place beside the others.

        In SQLite there are no others: what the last gateway had claimed is queued again.

        Raises `StartError`: the directory is in use or can't be used, the database can't be reached or is newer.
        """
        data_dir = DataDir.lock(settings.data_dir)
        try:
            journal = cls(settings, data_dir)
            await journal._start()
        except BaseException:
            data_dir.unlock()
            raise
        return journal

    async def _start(self) -> None:
        alone = self._notifications is None
        try:
            await self._database.write(lambda transaction: migrate(transaction.connection), seconds=math.inf)
            await self._beats.enter(alone=alone)
        except StoreUnavailable as error:
            await self._database.close()
            raise StartError(f"the journal can't be opened: {error.detail}") from error
        except BaseException:
            await self._database.close()
            raise
        if self._notifications is not None:
            self._beats.start()
            self._notifications.start()

    async def close(self) -> None:
        """Write what was submitted, then close the database and unlock the data directory."""
        await self._group_commit.drain()
        await self._group_release.drain()
        if self._notifications is not None:
            await self._notifications.stop()
        with suppress(StoreUnavailable):  # then the others find out
            await self._beats.leave()
        await self._database.close()
        self._data_dir.unlock()

    async def ping(self) -> None:
        """Raises `StoreUnavailable`."""
        await self._reads.queue_depth()

    async def add_document(self, new: NewDocument, slot: Slot | None = None) -> Document:
        """Write a document, its pages and its first event, and note it in the `slot` of an idempotency key.

        Raises `QueueFull`, and `IdempotencyInFlight` where another gateway has taken the key over.
        """

        def add(transaction: Transaction) -> Document:
            if slot is not None:
                self._keys.note(transaction, slot, new.id)
            return self._admission.add(transaction, new)

        return await self._database.write(add, repeatable=True)

    def reserve(self, tenant: str, key: str) -> AbstractAsyncContextManager[Reservation]:
        """Hold an idempotency key during one request; raises `IdempotencyInFlight` where another request holds it.

        At the end a key that is not complete is given back: a request with nothing made was none, of another one the
        documents stay noted.
        """
        return self._keys.reserve(tenant, key)

    async def complete(self, reservation: Reservation, refusals: Mapping[int, Problem]) -> None:
        """Keep an answer for those who repeat the request: the documents noted, and by the place of their file, from 0,
        the `refusals`. Without a store it is not kept, and nothing is raised.
        """
        await self._keys.complete(reservation, refusals)

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
        return await self._group_release.submit(Release(claim, attempts, not_before_seconds))

    async def _release_group(self, group: Sequence[Release]) -> list[bool]:
        return await self._database.write(lambda transaction: self._releases.release(transaction, group))

    async def rejoin(self, held: Collection[Claim]) -> set[Claim]:
        """After an absence: those of `held` that still hold. Pages that are claimed but not in `held` are queued again:
        the answer to their claim was lost.
        """
        await self._beats.beat()
        fences = {claim.fence: claim for claim in held}
        known = await self._database.write(self._releases.held)
        if unknown := known - fences.keys():
            while await self._database.write(lambda transaction: self._releases.free(transaction, is_one_of(unknown))):
                pass
        return {fences[fence] for fence in known & fences.keys()}

    async def cancel(self, document_id: str, tenant: str | None = None) -> Document:
        """Cancel all pages that have not ended; a document that has ended stays as it is.

        Raises `NotFound` and `Gone`.
        """
        return await self._database.write(
            lambda transaction: self._cancels.cancel(transaction, document_id, tenant), repeatable=True
        )

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
        await self._keys.give_back()
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

    async def outlook(self, document: Document) -> Outlook | None:
        """What lies before a document; None once a page of it has ended."""
        return await self._outlooks.outlook(document)

    async def capacity(self) -> Capacity:
        """Pages that wait and that are worked on, of all documents."""
        return await self._outlooks.capacity()

    async def queue_depth(self) -> int:
        """Pages queued, of all documents."""
        return await self._reads.queue_depth()

    async def orphans(self, keys: Collection[str]) -> set[str]:
        """Those of `keys`, a few thousand at most, that are the blob key of no document."""
        return await self._reads.orphans(keys)
