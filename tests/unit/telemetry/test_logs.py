"""What a process writes to standard error; each test's lines come from one process of its own."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.processes import DEADLINE_SECONDS

PROGRAM = """
import logging, structlog
from app.telemetry.logs import configure_logging, get_logger

early = get_logger("early")  # like every logger of the program: made at import, before the logs are set up
configure_logging("info")
early.info("made early")
page = get_logger("worker").bind(document_id="0198", page=3)
page.warning("attempt failed", lane="abc-0")
with structlog.contextvars.bound_contextvars(request_id="job 7"):
    get_logger("api").info("inside")
    logging.getLogger("uvicorn.error").error("of a %s", "library")
get_logger("api").info("outside")
page.debug("too fine")
logging.getLogger("httpx").info("too chatty")
logging.getLogger("httpx").warning("worth it")
try:
    raise ValueError("broken")
except ValueError:
    get_logger("main").exception("failed")
"""

QUIET_PROGRAM = """
import logging
from app.telemetry.logs import configure_logging, get_logger
configure_logging("error")
get_logger("main").warning("no")
logging.getLogger("httpx").warning("no")
get_logger("main").error("yes")
"""


def run(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


@pytest.fixture(scope="module")
def lines() -> dict[str, dict[str, Any]]:
    """Log lines by their event."""
    return {line["event"]: line for line in map(json.loads, run(PROGRAM))}


def test_each_line_is_one_object_with_its_level_its_room_and_its_time(lines: dict[str, dict[str, Any]]) -> None:
    assert (lines["made early"]["level"], lines["made early"]["logger"]) == ("info", "early")
    for line in lines.values():
        age = datetime.now(UTC) - datetime.fromisoformat(line["timestamp"])
        assert timedelta(0) < age < timedelta(minutes=5)


def test_bound_ids_stand_beside_what_is_said(lines: dict[str, dict[str, Any]]) -> None:
    line = lines["attempt failed"]
    assert (line["document_id"], line["page"], line["lane"], line["level"]) == ("0198", 3, "abc-0", "warning")


def test_the_id_of_a_request_is_on_its_lines_only_those_of_libraries_too(lines: dict[str, dict[str, Any]]) -> None:
    assert lines["inside"]["request_id"] == lines["of a library"]["request_id"] == "job 7"
    assert "request_id" not in lines["outside"]
    assert lines["of a library"]["logger"] == "uvicorn.error"


def test_an_exception_is_part_of_its_line(lines: dict[str, dict[str, Any]]) -> None:
    assert "ValueError: broken" in lines["failed"]["exception"]
    assert "Traceback" in lines["failed"]["exception"]


def test_what_is_below_the_level_is_not_written_and_chatty_libraries_only_when_they_warn(
    lines: dict[str, dict[str, Any]],
) -> None:
    assert {"too fine", "too chatty"}.isdisjoint(lines)
    assert lines["worth it"]["logger"] == "httpx"


def test_the_level_holds_for_libraries_too() -> None:
    assert [json.loads(line)["event"] for line in run(QUIET_PROGRAM)] == ["yes"]
