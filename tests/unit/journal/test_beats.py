"""Who lives, on clocks that the test moves."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import select

from app.documents.records import Claim
from app.errors import StoreUnavailable
from app.journal import releases
from app.journal.admission import Admission
from app.journal.beats import Beats
from app.journal.changes import Changes
from app.journal.claims import Claims
from app.journal.commits import Commits
from app.journal.database import Database
from app.journal.peers import Peers
from app.journal.queueing import QueueLimit
from app.journal.releases import Releases
from app.journal.sqlite import SqliteDriver
from app.journal.tables import gateways, metadata
from tests.journals import PROFILES, new_document, succeeded

CLAIM_SECONDS = 30.0


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(SqliteDriver(tmp_path / "journal.sqlite3"))
    await database.write(lambda transaction: metadata.create_all(transaction.connection))
    yield database
    await database.close()


@dataclass
class Member:
    """One of several gateways on a database, with a clock of its own."""

    name: str
    database: Database
    changes: Changes = field(default_factory=Changes)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.peers = Peers(self.name)
        own = Releases(self.changes, self.name)
        self.beats = Beats(self.database, self.changes, self.peers, own, CLAIM_SECONDS, self.clock)

    async def beat_for(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.seconds += 1
            await self.beats.beat()

    async def claim(self, limit: int) -> list[Claim]:
        return await self.database.write(lambda transaction: Claims(self.name).claim(transaction, limit, PROFILES, ()))

    async def commit(self, claim: Claim) -> bool:
        commits = Commits(self.changes, self.name)
        (accepted,) = await self.database.write(lambda transaction: commits.commit(transaction, [(claim, succeeded())]))
        return accepted


@pytest.fixture
async def one(database: Database) -> Member:
    member = Member("one", database)
    await member.beats.enter(alone=True)
    return member


@pytest.fixture
async def two(database: Database, one: Member) -> Member:
    member = Member("two", database)
    await member.beats.enter(alone=False)
    return member


async def add_document(database: Database, pages: int) -> None:
    admission = Admission(Changes(), QueueLimit(100, Peers("anybody")))
    await database.write(lambda transaction: admission.add(transaction, new_document(pages)))


async def names(database: Database) -> list[str]:
    return [row.id for row in await database.read(select(gateways.c.id).order_by(gateways.c.id))]


async def test_gateways_hear_what_the_others_want_and_how_fast_they_are(one: Member, two: Member) -> None:
    one.peers.want("cpu", 7)
    one.peers.note_rate(2.5)
    await one.beats.beat()
    await two.beats.beat()
    assert two.peers.wants("cpu") == {"one": 7, "two": 0}
    assert two.peers.pages_per_second == 2.5


async def test_a_gateway_that_is_silent_for_a_while_lives_but_holds_no_lanes(one: Member, two: Member) -> None:
    one.peers.want("cpu", 7)
    await one.beats.beat()
    await two.beat_for(5)
    assert two.peers.wants("cpu")["one"] == 7
    await two.beat_for(2)
    assert (two.peers.wants("cpu")["one"], two.peers.count) == (0, 2)
    await one.beats.beat()
    await two.beat_for(1)
    assert two.peers.wants("cpu")["one"] == 7


async def test_pages_of_a_gateway_that_stands_still_are_taken_over(one: Member, two: Member) -> None:
    await add_document(one.database, 3)
    claims = await one.claim(3)
    assert await one.commit(claims[0])
    queued: list[None] = []
    two.changes.on_queued(lambda: queued.append(None))

    await two.beat_for(int(CLAIM_SECONDS))
    assert await two.claim(3) == []
    await two.beat_for(2)

    assert queued
    assert [claim.page for claim in await two.claim(3)] == [2, 3]
    assert not await one.commit(claims[1])
    assert await names(two.database) == ["two"]
    assert two.peers.count == 1


async def test_a_gateway_that_beats_slowly_lives(one: Member, two: Member) -> None:
    for _ in range(4):
        await two.beat_for(int(CLAIM_SECONDS) - 1)
        await one.beats.beat()
    assert await names(two.database) == ["one", "two"]


async def test_a_claim_holds_as_long_as_nobody_has_taken_it_over(one: Member, two: Member) -> None:
    await add_document(one.database, 1)
    (claim,) = await one.claim(1)
    one.clock.seconds += 10 * CLAIM_SECONDS
    assert await one.commit(claim)


async def test_an_observer_that_was_away_takes_nobody_for_dead(one: Member, two: Member) -> None:
    await two.beats.beat()
    two.clock.seconds += 10 * CLAIM_SECONDS  # the database was, or the process was stopped
    await two.beat_for(int(CLAIM_SECONDS) - 1)
    assert await names(two.database) == ["one", "two"]
    await two.beat_for(3)
    assert await names(two.database) == ["two"]


async def test_a_gateway_that_was_taken_for_dead_comes_back_and_knows(one: Member, two: Member) -> None:
    doubts: list[None] = []
    one.changes.on_doubt(lambda: doubts.append(None))
    await one.beats.beat()
    assert not doubts
    await two.beat_for(int(CLAIM_SECONDS) + 2)

    await one.beats.beat()

    assert len(doubts) == 1
    assert await names(one.database) == ["one", "two"]


async def test_all_documents_of_a_dead_gateway_are_taken_over_at_once(
    one: Member, two: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "_DOCUMENTS_FREED", 3)
    await two.beats.beat()
    for _ in range(8):
        await add_document(one.database, 2)
    await one.claim(16)
    await one.beats.leave()
    await two.beats.beat()
    assert len(await two.claim(100)) == 16


async def test_a_take_over_that_the_store_broke_off_is_resumed_with_the_next_beat(
    one: Member, two: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two.beats.beat()
    await add_document(one.database, 1)
    await one.claim(1)
    await one.beats.leave()

    def away(*_: object) -> int:
        raise StoreUnavailable("the database is away")

    with monkeypatch.context() as outage:
        outage.setattr(releases.Releases, "free", away)
        with pytest.raises(StoreUnavailable):
            await two.beats.beat()
    await two.beats.beat()
    assert len(await two.claim(1)) == 1


async def test_a_gateway_that_leaves_is_not_waited_for(one: Member, two: Member) -> None:
    await two.beats.beat()
    await add_document(one.database, 1)
    await one.claim(1)
    await one.beats.leave()
    await two.beats.beat()
    assert [claim.page for claim in await two.claim(1)] == [1]


async def test_a_gateway_that_is_alone_takes_over_at_once(one: Member, database: Database) -> None:
    await add_document(database, 2)
    await one.claim(2)
    successor = Member("successor", database)
    await successor.beats.enter(alone=True)
    assert [claim.page for claim in await successor.claim(2)] == [1, 2]
    assert await names(database) == ["successor"]
