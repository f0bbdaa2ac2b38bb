"""The real server in a process of its own, with the real engine."""

import json
import shutil
import socket
import subprocess
import sys

import httpx
import pytest

from tests.pages import BODY_SIZE, chat_body, data_url, draw_page, encode
from tests.processes import CPU_SERVER, DEADLINE_SECONDS, READY, next_line, python

PAGE = encode(
    draw_page(
        [
            ("The Walking Thread", 60),
            ("Every page is committed as it is finished, streamed by id to anyone", BODY_SIZE),
            ("who asks, and never lost or read twice, whatever dies. A gateway takes", BODY_SIZE),
            ("uploads and renders their pages.", BODY_SIZE),
        ]
    )
)
TEXT = (
    "# The Walking Thread\n\nEvery page is committed as it is finished, streamed by id to anyone who asks, and never "
    "lost or read twice, whatever dies. A gateway takes uploads and renders their pages."
)


def test_it_reads_a_page_word_for_word_with_its_heading(replica_url: str) -> None:
    response = httpx.post(
        f"{replica_url}/v1/chat/completions", json=chat_body(data_url(PAGE)), timeout=DEADLINE_SECONDS
    )
    assert response.json()["choices"][0]["message"]["content"] == TEXT
    assert "PP-OCRv6 tiny" in response.json()["system_fingerprint"]


def test_it_prints_one_line_and_ends_in_order_at_sigterm() -> None:
    with python(*CPU_SERVER) as process:
        ready = next_line(process)
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 0
        assert next_line(process) == ""
    assert ready.startswith(f"{READY}http://127.0.0.1:")


def test_a_port_in_use_is_a_start_error_of_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with python(*CPU_SERVER, "--port", port) as process:
            assert process.wait(DEADLINE_SECONDS) == 2
            assert next_line(process) == ""
    err = capfd.readouterr().err
    assert len(err.splitlines()) == 1
    assert port in err


IN_A_NETWORK_OF_ITS_OWN = ["unshare", "--net", "--map-root-user"]
READ_ONE_PAGE = """
import fcntl, json, socket, struct, subprocess, sys, httpx
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
with subprocess.Popen([sys.executable, "-m", "app.replicas.cpu"], stdout=subprocess.PIPE, text=True) as server:
    url = server.stdout.readline().split()[-1]
    answer = httpx.post(url + "/v1/chat/completions", json=json.load(sys.stdin), timeout=30)
    server.terminate()
print(answer.json()["choices"][0]["message"]["content"], end="")
"""


def _can_cut_the_network() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*IN_A_NETWORK_OF_ITS_OWN, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not _can_cut_the_network(), reason="NOT TESTED: no right to unshare the network here")
def test_it_starts_and_reads_with_the_network_cut_off() -> None:
    command = [*IN_A_NETWORK_OF_ITS_OWN, sys.executable, "-c", READ_ONE_PAGE]
    finished = subprocess.run(
        command,
        input=json.dumps(chat_body(data_url(PAGE))),
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert finished.stdout == TEXT
