"""What is read of a file beside printed PDFs: images, blank pages, and the text layer that stands in."""

from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import pytest
from PIL import Image, ImageDraw

from tests.pdfs import numbered_pdf, text_pdf
from tests.standins import Reply, StandIn
from tests.system.gateway import Gateway, running_gateway


@pytest.fixture(scope="module")
async def replica() -> AsyncIterator[StandIn]:
    async with StandIn(text=lambda _: "read") as replica:
        yield replica


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory, replica: StandIn) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path_factory.mktemp("data"), [replica.url]) as gateway:
        await gateway.lanes_up(1)
        yield gateway


def _sheet(marked: bool) -> Image.Image:
    sheet = Image.new("1", (620, 877), "white")
    if marked:
        ImageDraw.Draw(sheet).text((100, 100), "a line of text", fill="black", font_size=30)
    return sheet


async def _pages(gateway: Gateway, file: bytes, **options: str) -> list[dict[str, Any]]:
    """The pages as the stream tells them, by number."""
    document = await gateway.post(file, **options)
    pages = [event.data["page"] async for event in gateway.follow(document["id"]) if event.kind == "page"]
    return sorted(pages, key=lambda page: page["page"])


async def test_a_fax_is_read_page_by_page_and_its_blank_sheet_is_not_sent(gateway: Gateway, replica: StandIn) -> None:
    fax = BytesIO()
    sheets = [_sheet(marked) for marked in (True, False, True)]
    sheets[0].save(fax, "TIFF", compression="group4", save_all=True, append_images=sheets[1:])
    calls = len(replica.calls)
    pages = await _pages(gateway, fax.getvalue())
    assert [(page["state"], page["source"], page["text"]) for page in pages] == [
        ("succeeded", "model", "read"),
        ("succeeded", "blank", ""),
        ("succeeded", "model", "read"),
    ]
    assert len(replica.calls) == calls + 2


async def test_a_photo_that_calls_itself_a_pdf_is_read_as_a_photo(gateway: Gateway) -> None:
    photo = BytesIO()
    _sheet(True).convert("RGB").save(photo, "JPEG")
    (page,) = await _pages(gateway, photo.getvalue())
    assert (page["text"], page["size"]) == ("read", [465.0, 657.75])


async def test_a_blank_page_of_a_pdf_is_read_as_such(gateway: Gateway) -> None:
    pages = await _pages(gateway, text_pdf(["one", "", "three"]))
    assert [page["source"] for page in pages] == ["model", "blank", "model"]


async def test_an_image_that_is_none_is_refused_at_once(gateway: Gateway) -> None:
    response = await gateway.client.post("/documents", content=b"\xff\xd8\xff\xe0 no photo")
    assert (response.status_code, response.json()["code"]) == (422, "damaged_image")


async def test_the_text_layer_stands_in_for_what_no_replica_reads(gateway: Gateway, replica: StandIn) -> None:
    replica.always(Reply(status=400))
    try:
        (page,) = await _pages(gateway, numbered_pdf(1), on_page_error="text_layer")
        assert (page["state"], page["source"], page["text"]) == ("succeeded", "text_layer", "PAGE 1")
        assert (page["error"], [warning["code"] for warning in page["warnings"]]) == (None, ["replica_error"])
        photo = BytesIO()
        _sheet(True).save(photo, "PNG")
        (page,) = await _pages(gateway, photo.getvalue(), on_page_error="text_layer")
        assert page["state"] == "failed"
    finally:
        replica.always(None)
