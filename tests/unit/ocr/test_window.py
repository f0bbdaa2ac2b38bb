import asyncio

import pytest

from app.ocr.window import MAX_PAGES, MAX_UPLOADS, MIN_DOCUMENTS, Place, Window


async def entered(window: Window, most: int = 1000) -> list[Place]:
    """Places until there is no room; the upload of each is over."""
    places: list[Place] = []
    while len(places) < most:
        try:
            async with asyncio.timeout(0.01):
                places.append(await window.enter())
        except TimeoutError:
            break
    return places


async def test_uploads_are_bounded() -> None:
    window = Window()
    places = await entered(window)
    assert len(places) == MAX_UPLOADS
    places[0].uploaded(1)
    assert len(await entered(window)) == 1


@pytest.mark.parametrize(("pages", "open_at_once"), [(1, MAX_PAGES), (1000, MIN_DOCUMENTS)])
async def test_few_large_documents_or_many_small_ones_are_open(pages: int, open_at_once: int) -> None:
    window = Window()
    count = 0
    while places := await entered(window, most=1):
        places[0].uploaded(pages)
        count += 1
    assert count == open_at_once


async def test_a_place_given_back_makes_room_whether_its_file_was_accepted_or_not() -> None:
    window = Window()
    for pages in (None, 1000, None, 1000):
        for place in await entered(window):
            with place:
                if pages is not None:
                    place.uploaded(pages)
    assert len(await entered(window)) == MAX_UPLOADS
