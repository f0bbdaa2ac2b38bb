"""Wake-ups inside the process."""

import asyncio

from app.journal import Changes


async def test_a_change_before_the_wait_is_not_lost() -> None:
    changes = Changes()
    with changes.watch("a") as watch:
        changes.changed("a")
        assert await watch.changed(0)
        assert not await watch.changed(0)


async def test_a_change_wakes_whoever_waits() -> None:
    changes = Changes()
    with changes.watch("a") as watch:
        waiting = asyncio.create_task(watch.changed(10))
        await asyncio.sleep(0)
        changes.changed("a")
        assert await waiting


async def test_every_watch_of_a_document_is_told_and_no_other() -> None:
    changes = Changes()
    with changes.watch("a") as one, changes.watch("a") as two, changes.watch("b") as other:
        changes.changed("a")
        assert await one.changed(0)
        assert await two.changed(0)
        assert not await other.changed(0)


async def test_a_watch_that_was_left_is_told_nothing() -> None:
    changes = Changes()
    with changes.watch("a") as left:
        pass
    changes.changed("a")
    assert not await left.changed(0)


def test_callbacks_are_all_called() -> None:
    changes = Changes()
    calls: list[str] = []
    changes.on_queued(lambda: calls.append("one"))
    changes.on_queued(lambda: calls.append("two"))
    changes.on_cancelled(calls.append)

    changes.queued()
    changes.cancelled("a")

    assert calls == ["one", "two", "a"]


class Told:
    """A relay that remembers."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def tell_changed(self, document_id: str) -> None:
        self.told.append(f"changed {document_id}")

    def tell_cancelled(self, document_id: str) -> None:
        self.told.append(f"cancelled {document_id}")

    def tell_queued(self) -> None:
        self.told.append("queued")


def test_what_happens_here_is_relayed_and_what_is_heard_is_not() -> None:
    changes, relay = Changes(), Told()
    changes.relay = relay
    changes.changed("a")
    changes.cancelled("b")
    changes.queued()
    assert relay.told == ["changed a", "cancelled b", "queued"]

    changes.hear_changed("c")
    changes.hear_cancelled("c")
    changes.hear_queued()
    assert len(relay.told) == 3


async def test_after_a_gap_everybody_is_woken() -> None:
    changes = Changes()
    queued: list[None] = []
    changes.on_queued(lambda: queued.append(None))
    with changes.watch("a") as one, changes.watch("b") as two:
        changes.hear_gap()
        assert await one.changed(0)
        assert await two.changed(0)
    assert queued


def test_a_gap_puts_claims_in_doubt() -> None:
    """A cancel may be among what was missed."""
    changes = Changes()
    calls: list[None] = []
    changes.on_doubt(lambda: calls.append(None))
    changes.hear_gap()
    assert len(calls) == 1


def test_doubt_is_told_to_all_who_hold_claims() -> None:
    changes = Changes()
    calls: list[None] = []
    changes.on_doubt(lambda: calls.append(None))
    changes.doubt()
    assert len(calls) == 1
