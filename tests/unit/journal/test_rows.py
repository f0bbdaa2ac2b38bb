"""Values as they come back from the tables."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import create_engine, insert, select
from sqlalchemy.pool import NullPool

from app.documents.records import PageOutcome
from app.documents.states import PageState
from app.journal.rows import outcome_values, page_of
from app.journal.tables import UtcMicroseconds, metadata, pages
from tests.journals import failed, succeeded

NOW = datetime(2026, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment",
    [NOW, NOW.astimezone(timezone(timedelta(hours=9))), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)],
)
def test_a_moment_is_kept_to_the_microsecond(moment: datetime) -> None:
    kind, dialect = UtcMicroseconds(), create_engine("sqlite://").dialect
    stored = kind.process_bind_param(moment, dialect)
    assert isinstance(stored, int)
    assert kind.process_result_value(stored, dialect) == moment


@pytest.mark.parametrize(
    "outcome", [succeeded("text\nwith ünïcode \U0001f600"), failed(), PageOutcome(PageState.FAILED)]
)
def test_an_outcome_comes_back_as_it_was(outcome: PageOutcome) -> None:
    with create_engine("sqlite://", poolclass=NullPool).begin() as connection:
        metadata.create_all(connection)
        connection.execute(
            insert(pages).values(document_id="a", number=1, queued_at=NOW, ended_at=NOW, **outcome_values(outcome))
        )
        page = page_of(connection.execute(select(pages)).one())
    assert page.outcome == outcome
    assert (page.document_id, page.number, page.ended_at, page.seq) == ("a", 1, NOW, None)
