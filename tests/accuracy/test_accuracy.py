"""Pages that the project makes, through the real engine and the layout: which characters are wrong, in what order."""

import pytest

from tests.accuracy.kinds import Kind, kinds
from tests.accuracy.measure import Reader, measure
from tests.accuracy.ours import embedded_reader


@pytest.fixture(scope="session")
def read() -> Reader:
    return embedded_reader()


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.name)
async def test_pages_are_read(kind: Kind, read: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    measured = await measure(kind, read)
    with capsys.disabled():
        print(f"\n{kind.name:16} {measured}", end=" ")
    assert measured.error_percent <= kind.max_error_percent
    assert measured.blocks_in_order == 1
