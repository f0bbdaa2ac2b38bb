"""Real OCR by real replicas, from the upload to the text."""

import asyncio
from pathlib import Path

from tests.pdfs import text_pdf
from tests.system.gateway import running_gateway

LETTERS = [
    text_pdf(["The first letter speaks of harbours.", "Its second page names 12 ships."], (300, 150)),
    text_pdf(["A second letter, about mountains.", "It ends with 4810 metres."], (300, 150)),
]


async def test_two_documents_at_once_come_out_as_they_do_one_by_one(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, environment={"PAGEFLEET_CPU_REPLICAS": "2"}) as gateway:
        alone = []
        for letter in LETTERS:
            document = await gateway.post(letter)
            await gateway.ended(document["id"])
            alone.append(await gateway.texts(document["id"]))
        documents = await asyncio.gather(*(gateway.post(letter) for letter in LETTERS))
        await asyncio.gather(*(gateway.ended(document["id"]) for document in documents))
        together = [await gateway.texts(document["id"]) for document in documents]
        page = (await gateway.client.get(f"{documents[0]['links']['pages']}/1")).json()
    assert together == alone
    assert page["model"] == "pagefleet-cpu"
    assert 0.9 < page["confidence"] <= 1
    assert alone == [
        {1: "The first letter speaks of harbours.", 2: "Its second page names 12 ships."},
        {1: "A second letter, about mountains.", 2: "It ends with 4810 metres."},
    ]
