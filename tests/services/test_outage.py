from collections import Counter
from pathlib import Path

from tests.services.outage import DOCUMENTS, PAGES, SLOTS, expected_texts, outage

CLAIM_SECONDS = 2


async def test_nothing_is_lost_while_the_database_is_away_for_twice_the_claim_time(tmp_path: Path) -> None:
    outcome = await outage(tmp_path, CLAIM_SECONDS, 2 * CLAIM_SECONDS)
    print(f"database away for {2 * CLAIM_SECONDS} s: {outcome}")
    for number in range(DOCUMENTS):
        stream = outcome.streams[number]
        assert [event.id for event in stream] == [str(seq) for seq in range(1, PAGES + 3)]
        assert Counter(event.page for event in stream if event.page) == Counter(range(1, PAGES + 1))
        assert stream[-1].data["document"]["state"] == "succeeded"
        assert outcome.texts[number] == expected_texts(number)
    assert len(outcome.calls) == DOCUMENTS * PAGES
    assert outcome.read_again <= SLOTS
    assert outcome.refusals
    for response in outcome.refusals:
        assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
        assert int(response.headers["Retry-After"]) > 0
