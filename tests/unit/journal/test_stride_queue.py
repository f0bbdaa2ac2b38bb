"""The order of service among entries with passes."""

from app.documents.fairness import stride
from app.journal.stride_queue import Entry, StrideQueue


def served(*entries: Entry) -> str:
    queue = StrideQueue(entries)
    order = []
    while queue:
        order.append(queue.serve())
    return "".join(order)


def test_equal_entries_take_turns() -> None:
    assert served(Entry(0, "a", 10, 3), Entry(0, "b", 10, 3)) == "ababab"


def test_the_smaller_pass_goes_first_until_it_has_caught_up() -> None:
    assert served(Entry(30, "a", 10, 2), Entry(0, "b", 10, 5)) == "bbbabab"


def test_half_the_stride_is_served_twice_as_often() -> None:
    order = served(Entry(0, "a", stride(3), 10), Entry(0, "b", stride(2), 20))
    assert order[:6].count("b") == 4
    assert order.count("a") == 10


def test_an_entry_leaves_with_its_last_page() -> None:
    assert served(Entry(0, "a", 10, 1), Entry(0, "b", 10, 3)) == "abbb"


def test_a_dropped_entry_is_not_served() -> None:
    queue = StrideQueue([Entry(0, "a", 10, 5), Entry(0, "b", 10, 1)])
    assert queue.first == "a"
    queue.drop()
    assert queue.serve() == "b"
    assert not queue
