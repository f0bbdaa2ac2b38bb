"""`/standin`: the counters of a stand-in, and its script as JSON.

A `POST` holds any of::

    {"plan": [REPLY, …], "always": REPLY | null, "mix": [[SHARE, REPLY], …],
     "foreign": 3, "kv_usage": 0.97, "preemptions": 12,      # of the rank that "rank" names; without it, of all
     "seconds": "lognormal:0.5,0.7", "health_status": 0, "models_status": 401, "metrics_status": 500,
     "shutting_down": true, "honours_rank": false, "queue_limit": 6, "knee": 8,
     "abort": true, "die": true, "leave": SECONDS}       # one after the other, as they stand

where REPLY has the fields of `replies.Reply`. With `"rank"` the script is that of one engine.
"""

import json
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.standins import wire
from tests.standins.replies import Fault, Reply
from tests.standins.service_time import parse_service_time

if TYPE_CHECKING:
    from tests.standins.engine import Engine
    from tests.standins.script import Script
    from tests.standins.server import StandIn

_SERVER = (
    *("health_status", "models_status", "metrics_status", "shutting_down"),
    *("honours_rank", "queue_limit", "knee", "model"),
)
_ENGINE = ("foreign", "kv_usage", "preemptions")


def counters(standin: "StandIn") -> dict[str, Any]:
    return {
        "calls": standin.call_count,
        "present": standin.present,
        "peak": standin.peak,
        "disconnects": standin.disconnects,
        "open_connections": standin.open_connections,
        "ranks": [
            {"calls": engine.calls, "running": engine.running, "waiting": engine.waiting, "peak": engine.peak}
            for engine in standin.engines
        ],
    }


def order(standin: "StandIn", body: bytes) -> tuple[int, dict[str, Any]]:
    """Change the script. Status and body of the response: 400 where the order can't be understood."""
    try:
        _obey(standin, json.loads(body))
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        return 400, wire.error(400, f"no order: {error}")
    return 200, counters(standin)


def _obey(standin: "StandIn", orders: dict[str, Any]) -> None:
    rank = orders.pop("rank", None)
    engines = standin.engines if rank is None else (standin.engines[rank],)
    script = standin.script if rank is None else standin.engines[rank].script
    for name, value in orders.items():
        if name in ("plan", "always", "mix"):
            _write(script, name, value)
        elif name in _ENGINE:
            _set(engines, name, value)
        elif name in _SERVER:
            setattr(standin, name, value)
        elif name == "seconds":
            standin.seconds = parse_service_time(str(value), random.Random())
        elif name == "abort":
            standin.abort()
        elif name == "die":
            standin.die()
        elif name == "leave":
            standin.leave(float(value))
        else:
            raise ValueError(f"nothing is called {name!r}")


def _write(script: "Script", name: str, value: Any) -> None:
    if name == "plan":
        script.plan(*map(reply_of, value))
    elif name == "always":
        script.always = None if value is None else reply_of(value)
    else:
        script.mix = [(float(share), reply_of(reply)) for share, reply in value]


def _set(engines: "Sequence[Engine]", name: str, value: Any) -> None:
    for engine in engines:
        setattr(engine, name, value)


def reply_of(fields: Mapping[str, Any]) -> Reply:
    """Raises `TypeError` or `ValueError` for what is no reply."""
    fault = fields.get("fault")
    return Reply(**{**fields, "fault": None if fault is None else Fault(fault)})
