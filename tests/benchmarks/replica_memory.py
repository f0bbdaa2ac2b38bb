"""Memory of a CPU replica over many pages."""

import re
from pathlib import Path
from typing import Any

import httpx
from PIL import ImageFilter

from tests.pages import BODY_SIZE, chat_body, data_url, draw_page, encode
from tests.processes import CPU_SERVER, READY, next_line, python

PAGES = 300
EARLY_PAGES = 50
MAX_MIB = 700
MAX_GROWTH = 1.1
_UNCLEAR_EVERY = 25
_LIFE_SECONDS = 900
_PAGE_SECONDS = 60
_TEXT = "Every page is committed as it is finished, streamed by id"


async def replica_memory(_folder: Path) -> None:
    """After 50 and after 300 small pages of different sizes; some are so unclear that the larger model reads them."""
    with python(*CPU_SERVER, life_seconds=_LIFE_SECONDS) as process:
        url = next_line(process).removeprefix(READY)
        resident, models = {}, []
        async with httpx.AsyncClient(base_url=url, timeout=_PAGE_SECONDS) as client:
            for number in range(1, PAGES + 1):
                answer = await client.post("/v1/chat/completions", json=_page(number))
                models.append(answer.raise_for_status().json()["pagefleet"]["model"])
                resident[number] = _mib(process.pid, "VmRSS")
        most = _mib(process.pid, "VmHWM")
    early, late = resident[EARLY_PAGES], resident[PAGES]
    larger = len([model for model in models if model != models[0]])
    print(
        f"memory of a CPU replica: {early} MiB after {EARLY_PAGES} pages, {late} after {PAGES}, {most} at most; "
        f"{larger} pages read by the larger model"
    )
    assert late <= MAX_GROWTH * early
    assert most <= MAX_MIB


def _page(number: int) -> dict[str, Any]:
    page = draw_page([(f"{number} {_TEXT}", BODY_SIZE)] * (1 + number % 5), size=(1000 + number, 400 + number % 200))
    if number % _UNCLEAR_EVERY == 1 + _UNCLEAR_EVERY // 2:
        page = page.filter(ImageFilter.GaussianBlur(3.4))
    return chat_body(data_url(encode(page)))


def _mib(pid: int, field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1]) // 1024
