"""`/capacity`: how much work waits, and what it is waiting for."""

from fastapi import APIRouter

from app.api.auth import Reader
from app.api.context import Ctx
from app.api.shapes import CapacityShape, capacity_shape

router = APIRouter(tags=["fleet"])


@router.get("/capacity")
async def capacity(ctx: Ctx, _caller: Reader) -> CapacityShape:
    """Pages of all tenants that wait and that are being read, how fast, and the lanes that read them.

    Pages and their rate are those of all gateways together, lanes and slots those that this one sees.
    """
    return capacity_shape(await ctx.journal.capacity(), ctx.fleet.lanes(), ctx.settings.max_queued_pages)
