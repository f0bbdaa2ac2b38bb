"""What starts one replica, and how it says that it is ready."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReplicaCommand:
    """How to start one replica, the first time and again."""

    name: str
    """Name in the logs."""
    argv: Callable[[int], Sequence[str]]
    """Command line for a TCP port; 0 asks the replica to take a free one."""
    ready: re.Pattern[str]
    """Found in the line on standard output that says the replica accepts requests; group `url` is its base URL."""
    port: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the parent's environment."""
