"""Real parents and real children."""

import os
import signal
import sys

import pytest

from app.lifeline import PARENT_ENV, child_environment
from tests.processes import DEADLINE_SECONDS, is_alive, next_line, python
from tests.waiting import until

CHILD = """
import os
from app.lifeline import die_with_parent
die_with_parent()
print(os.getpid(), flush=True)
{then}
"""
PARENT = """
import subprocess, sys, time
from app.lifeline import child_environment
subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=child_environment())
time.sleep(600)
"""
SLEEP = "import time; time.sleep(600)"
HOLD_THE_GIL = "sum(range(10**13))"


def test_a_child_knows_its_parent_and_has_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEFLEET_PORT", "8123")
    environment = child_environment()
    assert environment[PARENT_ENV] == str(os.getpid())
    assert environment["PAGEFLEET_PORT"] == "8123"
    assert PARENT_ENV not in os.environ


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere children end when their input closes")
@pytest.mark.parametrize("then", [SLEEP, HOLD_THE_GIL], ids=["asleep", "in C, with the GIL held"])
async def test_a_child_ends_when_its_parent_is_killed(then: str) -> None:
    with python("-c", PARENT, CHILD.format(then=then)) as parent:
        child = int(next_line(parent))
        assert is_alive(child)
        parent.send_signal(signal.SIGKILL)
        await until(lambda: not is_alive(child), DEADLINE_SECONDS)


def test_a_child_whose_parent_was_gone_before_it_asked_ends_at_once() -> None:
    with python("-c", "import os; os.environ['PAGEFLEET_PARENT_PID'] = '1'" + CHILD.format(then=SLEEP)) as orphan:
        assert next_line(orphan) == ""
        assert orphan.wait(DEADLINE_SECONDS) == 0


def test_who_was_started_by_hand_lives_on() -> None:
    by_hand = f"import os; del os.environ['{PARENT_ENV}']" + CHILD.format(then="print('still here')")
    with python("-c", by_hand) as process:
        assert next_line(process) == str(process.pid)
        assert next_line(process) == "still here"
        assert process.wait(DEADLINE_SECONDS) == 0
