"""Probes and metrics: no key, any Host."""

import asyncio
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import JSONResponse, Response

from app.api.context import Ctx
from app.errors import NotReady, StoreUnavailable
from app.telemetry.metrics import PAGES_QUEUED

router = APIRouter(tags=["operations"])

STORE_SECONDS = 2.0
"""What a scrape waits for the journal, of the ten seconds that it has as a rule."""


@router.get("/livez")
async def livez() -> Response:
    """200 as long as the process answers, whatever the load."""
    return JSONResponse({"status": "alive"})


@router.get("/readyz")
async def readyz(ctx: Ctx, lanes: Annotated[bool, Query()] = False) -> Response:
    """200 when uploads are taken: the store is reachable and the gateway isn't going down.

    Lanes are named, but asked for with `lanes=1` only: uploads are taken without them too, and wait.
    """
    ctx.accepting()
    await ctx.journal.ping()
    up = sum(lane.state.takes_pages for lane in ctx.fleet.lanes())
    if lanes and up == 0:
        raise NotReady()
    return JSONResponse({"status": "ready", "lanes_up": up})


@router.get("/metrics")
async def metrics(ctx: Ctx) -> Response:
    """What Prometheus reads. A store that is away costs one figure, which then stays as it was."""
    with suppress(StoreUnavailable, TimeoutError):
        async with asyncio.timeout(STORE_SECONDS):
            PAGES_QUEUED.set(await ctx.journal.queue_depth())
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
