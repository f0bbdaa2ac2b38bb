"""Load balancers of others, each with the best configuration that we know for pages.

Least connections, repeats on other servers, health checks; HAProxy has its queue in front of servers that take no more
than their slots.
"""

import shutil
import socket
from abc import abstractmethod
from collections.abc import Sequence

from tests.servers.server import Server, free_ports

LONGEST_PAGE_SECONDS = 4.0
"""The longest wait for an answer, so that a hung replica costs a benchmark no minutes."""
HEALTH_SECONDS = 0.5
PROGRAM_PATH = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin"


class Balancer(Server):
    """In front of `replicas`, given by their base URLs."""

    program: str

    def __init__(self, replicas: Sequence[str], slots: int) -> None:
        super().__init__()
        self._slots = slots
        self._servers = [url.removeprefix("http://") for url in replicas]
        (self._port,) = free_ports(1)

    @classmethod
    def find(cls) -> str | None:
        """Path of the program; None where it is not installed."""
        return shutil.which(cls.program, path=PROGRAM_PATH)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        program = self.find()
        assert program is not None
        (self.folder / "conf").write_text(self.configuration())
        self._launch([program, *self.arguments()])

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port)):
                return True
        except OSError:
            return False

    @abstractmethod
    def configuration(self) -> str: ...

    @abstractmethod
    def arguments(self) -> list[str]: ...


class HAProxy(Balancer):
    program = "haproxy"

    def arguments(self) -> list[str]:
        return ["-db", "-f", "conf"]

    def configuration(self) -> str:
        servers = "\n".join(f"    server replica{number} {server}" for number, server in enumerate(self._servers))
        # a request is repeated only if its body fits the buffer
        return f"""
global
    tune.bufsize 131072
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout queue 60s
    timeout server {LONGEST_PAGE_SECONDS:.0f}s
    retries 3
    option redispatch 1
    retry-on conn-failure empty-response response-timeout 500 502 503 504
    http-reuse always
listen replicas
    bind 127.0.0.1:{self._port}
    balance leastconn
    option httpchk GET /health
    default-server check inter {HEALTH_SECONDS * 1000:.0f}ms maxconn {self._slots}
    default-server observe layer7 error-limit 10 on-error mark-down
{servers}
"""


class Nginx(Balancer):
    program = "nginx"

    def arguments(self) -> list[str]:
        return ["-p", str(self.folder), "-c", "conf", "-e", "stderr"]

    def configuration(self) -> str:
        servers = "\n".join(f"        server {server} max_fails=2 fail_timeout=10s;" for server in self._servers)
        return f"""
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path body;
    client_body_buffer_size 128k;
    proxy_temp_path proxy;
    upstream replicas {{
        zone replicas 256k;
        least_conn;
{servers}
        keepalive 64;
    }}
    server {{
        listen 127.0.0.1:{self._port};
        location / {{
            proxy_pass http://replicas;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout {LONGEST_PAGE_SECONDS:.0f}s;
            proxy_next_upstream error timeout http_500 http_502 http_503 http_504 non_idempotent;
        }}
    }}
}}
"""
