import signal

import httpx
import pytest

from app.errors import StartError
from app.replicas.up import replicas_up
from tests.processes import DEADLINE_SECONDS, next_line, python

UP = """
import asyncio, sys
from app.replicas.up import replicas_up
from app.telemetry.logs import configure_logging
configure_logging("info")
sys.exit(asyncio.run(replicas_up(engine="cpu", count=int(sys.argv[1]), host="127.0.0.1", port=0)))
"""


@pytest.mark.parametrize(("count", "number"), [(2, signal.SIGTERM), (1, signal.SIGINT)])
def test_it_prints_each_url_and_a_signal_ends_it_with_0(count: int, number: signal.Signals) -> None:
    with python("-c", UP, str(count)) as process:
        lines = [next_line(process) for _ in range(count)]
        assert all(line.startswith("replica up at http://127.0.0.1:") for line in lines)
        urls = [line.split()[-1] for line in lines]
        assert [httpx.get(f"{url}/health").status_code for url in urls] == [200] * count
        process.send_signal(number)
        assert process.wait(DEADLINE_SECONDS) == 0
    for url in urls:
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health")


@pytest.mark.parametrize(("engine", "count"), [("vllm", 1), ("cpu", 0)])
async def test_what_can_not_be_started_is_a_start_error(engine: str, count: int) -> None:
    with pytest.raises(StartError):
        await replicas_up(engine=engine, count=count, host="127.0.0.1", port=0)
