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
