"""`python -m tests.crash --rounds 200 --store sqlite`: exits 1 where a promise was broken; then it keeps the folder."""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.scenario import crash_test
from tests.crash.stores import Store, postgresql, sqlite


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description="kill -9 at random moments")
    parser.add_argument("--rounds", type=int, default=200, help="how often to kill (200)")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite", help="(sqlite)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**6), help="of an earlier run, to repeat its plan"
    )
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pagefleet-crash-"))
    print(f"crash test on {options.store} in {folder}: {options.rounds} kills, --seed {options.seed}", flush=True)
    with _store(options.store, folder) as store:
        report = asyncio.run(crash_test(folder, store, options.rounds, options.seed))
    print(report.figures)
    for fault in report.faults:
        print(f"FAULT: {fault}")
    if report.faults:
        return 1
    print("0 lost, 0 twice, 0 left over")
    shutil.rmtree(folder)
    return 0


@contextmanager
def _store(name: str, folder: Path) -> Iterator[Store]:
    if name == "sqlite":
        yield sqlite(folder)
    else:
        from tests.servers import PostgresServer  # needs packages that SQLite does not

        with PostgresServer() as server:
            yield postgresql(folder, server.url)


if __name__ == "__main__":
    sys.exit(main())
