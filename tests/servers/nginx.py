"""nginx in front of gateways, with the configuration that users get."""

import re
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from tests.servers.server import Server, free_ports

SITE = Path(__file__).parents[2] / "deploy" / "nginx" / "pagefleet.conf"
MAIN = """
daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    include site.conf;
}
"""


class Nginx(Server):
    """Round robin over `gateways`, given by their base URLs."""

    def __init__(self, gateways: Sequence[str]) -> None:
        super().__init__()
        self._gateways = gateways
        (self._port,) = free_ports(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
        if program is None:
            raise RuntimeError("nginx is missing; on Debian: apt-get install nginx-light")
        servers = "\n".join(f"server {url.removeprefix('http://')};" for url in self._gateways)
        site, upstreams = re.subn(r"(?:\s*server [\d.:]+;)+", f"\n{servers}", SITE.read_text())
        site, listens = re.subn(r"listen \d+;", f"listen 127.0.0.1:{self._port};", site)
        assert (upstreams, listens) == (1, 1)
        (self.folder / "site.conf").write_text(site)
        (self.folder / "nginx.conf").write_text(MAIN)
        self._launch([program, "-p", self.folder, "-c", "nginx.conf", "-e", "stderr"])

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port)):
                return True
        except OSError:
            return False
