"""`/lanes`: the fleet as the router sees it."""

from fastapi import APIRouter

from app.api.auth import Reader
from app.api.context import Ctx
from app.api.shapes import LaneShape, lane_shape

router = APIRouter(tags=["fleet"])


@router.get("/lanes")
async def lanes(ctx: Ctx, _caller: Reader) -> dict[str, list[LaneShape]]:
    """Every lane with its state, its window and its attempts in flight."""
    return {"lanes": [lane_shape(lane) for lane in ctx.fleet.lanes()]}
