"""Lanes, their health, the choice among them, and the client that has a page read."""

from app.fleet.attempt import Attempt
from app.fleet.client import Answer
from app.fleet.desired import Desired
from app.fleet.fleet import Fleet, Serves
from app.fleet.health import LaneState
from app.fleet.view import LaneView, lane_id

__all__ = ["Answer", "Attempt", "Desired", "Fleet", "LaneState", "LaneView", "Serves", "lane_id"]
