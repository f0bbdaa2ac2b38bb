import pytest

from app.api.negotiation import preferred
from app.errors import NotAcceptable

OFFERS = ("text/event-stream", "application/x-ndjson")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, 0),
        ("", 0),
        ("*/*", 0),
        ("application/x-ndjson", 1),
        ("application/X-NDJSON ; charset=utf-8", 1),
        ("text/html, application/x-ndjson;q=0.5, */*;q=0.1", 1),
        ("text/event-stream;q=0.2, application/*;q=0.9", 1),
        ("text/event-stream;q=0, */*", 1),
        ("application/x-ndjson;q=nonsense, text/*;q=0.1", 0),
    ],
)
def test_the_client_likes_best(accept: str | None, chosen: int) -> None:
    assert preferred(accept, OFFERS) == OFFERS[chosen]


@pytest.mark.parametrize("accept", ["text/html", "text/event-stream;q=0, image/*"])
def test_nothing_fits(accept: str) -> None:
    with pytest.raises(NotAcceptable, match="application/x-ndjson"):
        preferred(accept, OFFERS)
