"""Scripted stand-ins for OCR replicas: real HTTP servers with slots, ranks, service times and faults to order.

In a test, on a free port, in the test's own loop::

    async with StandIn(slots=2, seconds=0.05) as replica:
        replica.plan(Reply(status=500), Reply(fault=Fault.RESET))   # the next two calls; then good answers again
        ...                                                         # talk to replica.url
        assert replica.peak == 2 and replica.calls[0].image == jpeg

As processes of their own, to be killed and started again, or to keep their CPU time out of the test's::

    async with StandInFleet(4, slots=1, seconds="lognormal:0.2,0.7") as replicas:     # tests.standins.fleet
        await replicas[0].always(Reply(fault=Fault.HANG))
        await replicas[1].kill()
        ...                                                         # talk to replicas.urls
        await replicas[1].start()                                   # on the same port
        assert (await replicas[0].counters())["calls"] == 1

By hand: `python -m tests.standins --help`.

They speak `/health`, `/v1/models`, `/metrics` and `/v1/chat/completions` in the words of vLLM 0.32: the chunks of a
stream, the bodies of its errors and the labels of its metrics are those seen there. Calls over the slots of a rank wait
in line, as they do in an engine. A connection that the client closes ends its call at once. `GET /standin` gives the
counters as JSON, `POST /standin` changes the script (`control.py`).
"""

from tests.standins.call import Call, name_call
from tests.standins.replies import Fault, Reply
from tests.standins.server import StandIn

__all__ = ["Call", "Fault", "Reply", "StandIn", "name_call"]
