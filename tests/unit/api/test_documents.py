"""What the upload's route refuses before it takes a file."""

import json
import time

import httpx
import pytest
from fastapi import FastAPI

from tests.unit.api.asgi import Exchange, scope_of


async def test_an_option_that_is_there_twice_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post("/documents?pages=1&ttl=5&pages=2", content=b"%PDF")
    assert (response.status_code, response.json()["code"], response.json()["option"]) == (
        422,
        "option_invalid",
        "pages",
    )


@pytest.mark.parametrize("last", ["", "&0="])
async def test_very_many_options_hold_nobody_up(application: FastAPI, last: str) -> None:
    """Heads of 256 KiB get this far, and while they are looked at nothing else is done."""
    query = "&".join(f"{number:x}=" for number in range(40_000)) + last
    scope = {**scope_of("POST", "/documents", {"Host": "localhost"}), "query_string": query.encode()}
    upload = Exchange([b"%PDF"])
    started = time.monotonic()
    await upload.run(application, scope)
    assert time.monotonic() - started < 5
    assert json.loads(upload.body)["code"] == ("option_invalid" if last else "option_unknown")
