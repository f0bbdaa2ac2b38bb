"""Who calls: one tenant, and what they may do there."""

from dataclasses import dataclass
from enum import StrEnum

from app.errors import Forbidden


class Scope(StrEnum):
    """What a key allows. `write` alone can hand documents in and end them, but read none of their text."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    """Changes to the fleet; includes the other two."""


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: str
    name: str | None
    """The key's name, for logs; None: no key was asked for."""
    scopes: frozenset[Scope]

    def require(self, scope: Scope) -> None:
        """Raises `Forbidden`."""
        if scope not in self.scopes and Scope.ADMIN not in self.scopes:
            raise Forbidden(f"this needs a key with the scope {scope.value!r}", scope=scope.value)


ANONYMOUS = Caller("default", None, frozenset({Scope.READ, Scope.WRITE}))
"""Everybody, where no key is needed."""
