"""Idempotency keys: one request holds a key, and who comes later gets what it made, or goes on from there."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import delete, func, insert, select, update

from app.documents.records import Document
from app.errors import Gone, IdempotencyInFlight, NotFound, QueueFull, StoreUnavailable, UnsupportedType
from app.journal import Journal
from app.journal.database import Transaction
from app.journal.idempotency import Hold, IdempotencyKeys, Reservation, Slot
from app.journal.tables import EPOCH, gateways, idempotency_keys
from app.settings import Settings
from tests.journals import new_document
from tests.waiting import until

DEADLINE_SECONDS = 10
FINGERPRINT = "f" * 64
REFUSAL = UnsupportedType("just text").problem()


@pytest.fixture
async def neighbour(journal: Journal) -> AsyncIterator[IdempotencyKeys]:
    """The keys of another gateway on the same store."""
    await journal._database.write(
        lambda transaction: transaction.run(insert(gateways).values(id="neighbour", wants={}))
    )
    yield IdempotencyKeys(journal._database, "neighbour", life_seconds=3600)


async def bury(journal: Journal, gateway: str) -> None:
    await journal._database.write(lambda transaction: transaction.run(delete(gateways).where(gateways.c.id == gateway)))


async def expire(journal: Journal) -> None:
    await journal._database.write(
        lambda transaction: transaction.run(update(idempotency_keys).values(expires_at=EPOCH))
    )


async def keys_kept(journal: Journal) -> int:
    ((count,),) = await journal._database.read(select(func.count()).select_from(idempotency_keys))
    return int(count)


async def make(journal: Journal, reservation: Reservation, index: int = 0) -> Document:
    return await journal.add_document(new_document(), Slot(reservation, index, FINGERPRINT))


async def answer(journal: Journal, key: str = "key") -> Document:
    """A request that is answered in full: one document, and one file refused."""
    async with journal.reserve("default", key) as reservation:
        document = await make(journal, reservation)
        await journal.complete(reservation, {1: REFUSAL})
    return document


async def test_an_answered_key_gives_what_was_made_as_often_as_it_is_asked(journal: Journal) -> None:
    document = await answer(journal)

    for _ in range(3):
        async with journal.reserve("default", "key") as reservation:
            assert reservation.answered
            assert reservation.fingerprint == FINGERPRINT
            assert reservation.results == {0: document.id, 1: REFUSAL}


async def test_an_answered_key_can_be_asked_for_by_many_at_once(journal: Journal) -> None:
    document = await answer(journal)

    async with AsyncExitStack() as stack:
        reserving = (stack.enter_async_context(journal.reserve("default", "key")) for _ in range(20))
        assert {reservation.results[0] for reservation in await asyncio.gather(*reserving)} == {document.id}


async def test_a_key_that_a_request_holds_is_in_flight(journal: Journal, neighbour: IdempotencyKeys) -> None:
    async with journal.reserve("default", "key"):
        for gateway in (journal, neighbour):
            with pytest.raises(IdempotencyInFlight) as caught:
                async with gateway.reserve("default", "key"):
                    pass
            assert caught.value.problem()["retry_after"] >= 1


async def test_of_many_at_once_on_two_gateways_one_holds_the_key(journal: Journal, neighbour: IdempotencyKeys) -> None:
    done = asyncio.Event()

    async def request(gateway: Journal | IdempotencyKeys) -> str:
        try:
            async with gateway.reserve("default", "key"):
                await done.wait()
                return "held"
        except IdempotencyInFlight:
            return "in flight"

    requests = [asyncio.create_task(request(gateway)) for gateway in (journal, neighbour) * 25]
    await until(lambda: sum(task.done() for task in requests) == 49)
    done.set()

    assert Counter(await asyncio.gather(*requests)) == {"held": 1, "in flight": 49}


async def test_keys_of_different_tenants_and_different_keys_know_nothing_of_each_other(journal: Journal) -> None:
    await answer(journal)

    async with journal.reserve("other", "key") as others, journal.reserve("default", "KEY") as another:
        assert (others.results, another.results) == ({}, {})


@pytest.mark.parametrize("error", [RuntimeError("the client left"), QueueFull()])
async def test_a_request_that_made_nothing_was_none(journal: Journal, error: Exception) -> None:
    with pytest.raises(type(error)):
        async with journal.reserve("default", "key"):
            raise error

    assert await keys_kept(journal) == 0
    async with journal.reserve("default", "key") as reservation:
        assert (reservation.answered, reservation.fingerprint, reservation.results) == (False, None, {})


async def test_a_request_that_was_not_completed_is_gone_on_with(journal: Journal) -> None:
    with pytest.raises(QueueFull):
        async with journal.reserve("default", "key") as reservation:
            first = await make(journal, reservation, 0)
            raise QueueFull

    async with journal.reserve("default", "key") as reservation:
        assert (reservation.answered, reservation.fingerprint) == (False, FINGERPRINT)
        assert reservation.results == {0: first.id}
        second = await make(journal, reservation, 1)
        await journal.complete(reservation, {})

    async with journal.reserve("default", "key") as reservation:
        assert (reservation.answered, reservation.results) == (True, {0: first.id, 1: second.id})


async def test_after_a_gateway_died_between_two_files_the_next_goes_on_from_there(settings: Settings) -> None:
    journal = await Journal.open(settings)
    async with journal.reserve("default", "key") as reservation:
        first = await make(journal, reservation)
        await journal.close()

    journal = await Journal.open(settings)
    async with journal.reserve("default", "key") as reservation:
        assert (reservation.answered, reservation.results) == (False, {0: first.id})
    assert [document.id for document in (await journal.list_documents("default"))[0]] == [first.id]
    await journal.close()


async def test_a_gateway_whose_key_was_taken_over_makes_no_document(
    journal: Journal, neighbour: IdempotencyKeys
) -> None:
    async with neighbour.reserve("default", "key"):
        await bury(journal, "neighbour")
        async with journal.reserve("default", "key") as taken:
            pass
    assert await keys_kept(journal) == 0

    new = new_document()
    with pytest.raises(IdempotencyInFlight):
        await journal.add_document(new, Slot(taken, 0, FINGERPRINT))
    with pytest.raises(NotFound):
        await journal.document(new.id)


async def test_who_lost_a_key_changes_nothing_of_it(journal: Journal, neighbour: IdempotencyKeys) -> None:
    async with AsyncExitStack() as stack:
        lost = await stack.enter_async_context(neighbour.reserve("default", "key"))
        await bury(journal, "neighbour")
        document = await answer(journal)
        await neighbour.complete(lost, {0: REFUSAL})

    async with journal.reserve("default", "key") as reservation:
        assert (reservation.answered, reservation.results) == (True, {0: document.id, 1: REFUSAL})


async def test_a_document_that_is_refused_is_not_noted(journal: Journal) -> None:
    async with journal.reserve("default", "key") as reservation:
        with pytest.raises(QueueFull):
            await journal.add_document(new_document(10_001), Slot(reservation, 0, FINGERPRINT))

    assert await keys_kept(journal) == 0


async def test_a_document_written_twice_is_one(journal: Journal) -> None:
    new = new_document()
    async with journal.reserve("default", "key") as reservation:
        for _ in range(2):
            assert (await journal.add_document(new, Slot(reservation, 0, FINGERPRINT))).id == new.id
        await journal.complete(reservation, {})

    async with journal.reserve("default", "key") as reservation:
        assert reservation.results == {0: new.id}


async def test_a_key_that_could_not_be_given_back_is_free_for_this_gateway_at_once_and_for_others_after_a_sweep(
    journal: Journal, neighbour: IdempotencyKeys
) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(journal.reserve("default", "ours"))
        await stack.enter_async_context(journal.reserve("default", "theirs"))
        journal._database._closed = True  # out of reach
    journal._database._closed = False

    async with journal.reserve("default", "ours"):
        with pytest.raises(IdempotencyInFlight):
            async with neighbour.reserve("default", "theirs"):
                pass
        await journal.sweep()
        async with neighbour.reserve("default", "theirs"):
            pass
        with pytest.raises(IdempotencyInFlight):
            async with neighbour.reserve("default", "ours"):
                pass


async def test_a_reservation_that_comes_about_when_its_request_is_over_is_given_back_by_a_sweep(
    journal: Journal, neighbour: IdempotencyKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be in flight for other gateways as long as this one lives."""
    reserve, reserving, go_on = IdempotencyKeys._reserve, threading.Event(), threading.Event()

    def reserve_slowly(keys: IdempotencyKeys, transaction: Transaction, hold: Hold) -> Reservation:
        reservation = reserve(keys, transaction, hold)
        reserving.set()
        go_on.wait(DEADLINE_SECONDS)
        return reservation

    async def request() -> None:
        async with journal.reserve("default", "late"):
            pass

    with monkeypatch.context() as slow:
        slow.setattr(IdempotencyKeys, "_reserve", reserve_slowly)
        late = asyncio.create_task(request())
        await until(reserving.is_set)
        late.cancel()
        await asyncio.sleep(0.1)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await late
        await until(lambda: not journal._database._writes)

    await journal.sweep()
    async with neighbour.reserve("default", "late"):
        pass


async def test_requests_that_never_reached_the_store_leave_nothing_to_give_back(journal: Journal) -> None:
    """In an outage they are many, and giving them all back one after the other would hold up the sweep."""
    journal._database._closed = True  # out of reach
    for number in range(100):
        with pytest.raises(StoreUnavailable):
            async with journal.reserve("default", f"key {number}"):
                pass
    journal._database._closed = False
    assert (journal._keys._left, journal._keys._held) == (set(), set())


async def test_a_key_whose_time_is_over_was_never_used(journal: Journal) -> None:
    await answer(journal)
    await expire(journal)

    async with journal.reserve("default", "key") as reservation:
        assert (reservation.answered, reservation.fingerprint, reservation.results) == (False, None, {})
        await make(journal, reservation)
        await journal.complete(reservation, {})

    async with journal.reserve("default", "key") as reservation:
        assert reservation.answered


async def test_the_sweep_erases_keys_whose_time_is_over_but_none_in_flight(
    journal: Journal, neighbour: IdempotencyKeys
) -> None:
    await answer(journal, "old")
    async with journal.reserve("default", "held"):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(neighbour.reserve("default", "void"))
            await expire(journal)
            await bury(journal, "neighbour")
            await answer(journal, "new")
            assert await keys_kept(journal) == 4
            await journal.sweep()
            assert await keys_kept(journal) == 2
        with pytest.raises(IdempotencyInFlight):
            async with journal.reserve("default", "held"):
                pass


async def test_a_key_outlives_its_documents(journal: Journal) -> None:
    document = await answer(journal)
    await journal.delete(document.id)

    async with journal.reserve("default", "key") as reservation:
        assert reservation.results[0] == document.id
    with pytest.raises((NotFound, Gone)):
        await journal.document(document.id)
