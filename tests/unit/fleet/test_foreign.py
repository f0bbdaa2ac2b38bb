from app.fleet.foreign import ForeignLoad


def test_what_others_send_is_what_is_there_beyond_our_own() -> None:
    load = ForeignLoad()
    for _ in range(3):
        load.sent(4)
        load.scraped(10.0, inflight=4)
    assert load.requests == 6.0


def test_our_own_peak_between_scrapes_is_not_taken_for_others() -> None:
    """The gauge may still show attempts that ended just before the scrape."""
    load = ForeignLoad()
    load.sent(8)
    load.scraped(8.0, inflight=0)
    assert load.requests == 0.0


def test_one_high_reading_in_three_is_a_lag_not_a_load() -> None:
    load = ForeignLoad()
    for requests in (5.0, 0.0, 5.0):
        load.scraped(requests, inflight=0)
    assert load.requests == 0.0
    load.scraped(5.0, inflight=0)
    load.scraped(6.0, inflight=0)
    assert load.requests == 5.0


def test_nothing_is_known_without_a_reading() -> None:
    load = ForeignLoad()
    load.scraped(5.0, inflight=0)
    load.scraped(None, inflight=0)
    assert load.requests == 0.0
