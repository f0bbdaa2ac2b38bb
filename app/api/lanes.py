"""`/lanes`: the fleet as the router sees it."""

from fastapi import APIRouter

from app.api.auth import Reader
from app.api.context import Ctx
from app.api.shapes import LaneShape, lane_shape

router = APIRouter(tags=["fleet"])


@router.get("/lanes")
async def lanes(ctx: Ctx, _caller: Reader) -> dict[str, list[LaneShape]]:
    """Every lane with its state and why it is in it, its window, its attempts and its speed.

    `rank` is the data-parallel rank that its requests name. `engines` over 1: a server with ranks that does not heed
    the name of one, which is used as a whole.
    """
    return {"lanes": [lane_shape(lane) for lane in ctx.fleet.lanes()]}
