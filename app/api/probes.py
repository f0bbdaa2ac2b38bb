"""Probes and metrics: no key, any Host."""

from typing import Annotated

from fastapi import APIRouter, Query
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import JSONResponse, Response

from app.api.context import Ctx
from app.errors import NotReady

router = APIRouter(tags=["operations"])


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
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
