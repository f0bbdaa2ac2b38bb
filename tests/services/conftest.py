"""What several gateways share."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.servers import PostgresServer, SeaweedServer
from tests.services.pages import name_shape
from tests.standins import StandIn

CLAIM_SECONDS = 3


@pytest.fixture
def shared(postgres: PostgresServer, seaweed: SeaweedServer) -> Iterator[dict[str, str]]:
    """Environment of gateways on one database and one bucket, both empty."""
    database_url = postgres.create_database()
    yield {
        "PAGEFLEET_DATABASE_URL": database_url,
        "PAGEFLEET_BLOB_URL": seaweed.create_bucket(),
        "PAGEFLEET_CLAIM_SECONDS": str(CLAIM_SECONDS),
        **seaweed.environment,
    }
    postgres.drop_database(database_url)


@pytest.fixture
async def replica() -> AsyncIterator[StandIn]:
    async with StandIn(slots=8, seconds=0.1, text=name_shape) as replica:
        yield replica
