from app.replicas.backoff import LONGEST_SECONDS, SETTLED_SECONDS, Backoff


def test_a_replica_that_worked_restarts_at_once_the_first_time() -> None:
    backoff = Backoff()
    assert [backoff.after(1, was_up=True) for _ in range(4)] == [0, 0.2, 0.4, 0.8]


def test_a_replica_that_never_worked_waits_longer_each_time_up_to_a_limit() -> None:
    backoff = Backoff()
    waits = [backoff.after(1, was_up=False) for _ in range(9)]
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, LONGEST_SECONDS, LONGEST_SECONDS, LONGEST_SECONDS]


def test_a_long_life_forgives_the_deaths_before_it() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.after(1, was_up=True)
    assert backoff.after(SETTLED_SECONDS, was_up=True) == 0
    assert backoff.after(1, was_up=True) == 0.2
