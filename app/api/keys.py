"""API keys: a YAML file of their hashes, with one tenant and some scopes a key.

Of a key only its SHA-256 is kept. Passwords need salt and a slow hash because they can be guessed; a key is 256 random
bits, so that nothing but trying them all leads from its hash back to it, and a fast hash costs a request nothing.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from app.api.callers import Caller, Scope
from app.errors import StartError
from app.journal.blobs import blob_key
from app.telemetry.logs import get_logger

KEY_PREFIX = "pf_"
"""Lets people and scanners of leaked secrets tell what a key is for."""
KEY_BYTES = 32

_log = get_logger("api")


def _printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError("a name has printable characters only")
    return name


def _tenant(name: str) -> str:
    try:
        blob_key(name, "document")
    except ValueError:
        raise ValueError("a tenant is named by letters, digits, '.', '_' and '-', 128 at most") from None
    return name


class KeyEntry(BaseModel):
    """One entry of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_printable)]
    tenant: Annotated[str, AfterValidator(_tenant)]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", repr=False)]

    def matches(self, digest: bytes) -> bool:
        return hmac.compare_digest(bytes.fromhex(self.sha256), digest)

    @property
    def caller(self) -> Caller:
        return Caller(self.tenant, self.name, frozenset(self.scopes))


def new_key(tenant: str, name: str | None, scopes: Sequence[str]) -> tuple[str, KeyEntry]:
    """A new key, and the entry that makes it known; without a `name` it gets one of its own. Raises `StartError`."""
    key = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
    name = f"{tenant}-{secrets.token_hex(4)}" if name is None else name
    entry = {"name": name, "tenant": tenant, "scopes": list(scopes), "sha256": _digest(key).hex()}
    return key, _entry(entry, "this key")


def as_yaml(entry: KeyEntry) -> str:
    """The entry as a list of one, to be appended to a file."""
    text: str = yaml.safe_dump([entry.model_dump(mode="json")], sort_keys=False, default_flow_style=None)
    return text


def read_keys(path: Path) -> tuple[KeyEntry, ...]:
    """The entries of a file. Raises `StartError` that names the entry at fault, and never tells its hash."""
    try:
        items = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise StartError(f"can't read the API keys in {path}: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # the second: a date that there is not, for one
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f" at line {mark.line + 1}"
        raise StartError(f"the API keys in {path} are no YAML{place}") from None
    if not isinstance(items, list):
        raise StartError(f"the API keys in {path} are no list; `pagefleet keys new` writes its entries")
    entries = tuple(_entry(item, f"{path}: entry {number}") for number, item in enumerate(items, start=1))
    _check_unique(entries, path)
    return entries


def _entry(item: Any, place: str) -> KeyEntry:
    try:
        return KeyEntry.model_validate(item)
    except ValidationError as error:
        name = item.get("name") if isinstance(item, dict) else None
        named = f" ({name})" if isinstance(name, str) else ""
        faults = "; ".join(
            ": ".join([*map(str, fault["loc"]), fault["msg"].removeprefix("Value error, ")]) for fault in error.errors()
        )
        raise StartError(f"{place}{named}: {faults}") from None


def _check_unique(entries: Sequence[KeyEntry], path: Path) -> None:
    for name, count in Counter(entry.name for entry in entries).items():
        if count > 1:
            raise StartError(f"{path}: the name {name} is there {count} times")
    owners: dict[str, str] = {}
    for entry in entries:
        if (owner := owners.setdefault(entry.sha256, entry.name)) != entry.name:
            raise StartError(f"{path}: {owner} and {entry.name} are the same key")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class Keys:
    """The keys of a file, as it is now: mounted secrets are replaced while the service runs."""

    def __init__(self, path: Path) -> None:
        """Raises `StartError`."""
        self._path = path
        self._reading = asyncio.Lock()
        self._version = self._current_version()
        self._entries = read_keys(path)

    async def caller(self, key: str) -> Caller | None:
        """Whose key it is; None if nobody's. How long that takes tells nothing about the keys that there are."""
        if self._current_version() != self._version:
            async with self._reading:  # of two versions read at once the older might win
                await self._reload()
        digest = _digest(key)
        matching = [entry for entry in self._entries if entry.matches(digest)]
        return matching[0].caller if matching else None

    def _current_version(self) -> tuple[int, int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    async def _reload(self) -> None:
        """A version that can't be read changes nothing: a slip of an editor must not lock everybody out."""
        version = self._current_version()
        if version == self._version:
            return
        try:
            self._entries = await asyncio.to_thread(read_keys, self._path)
        except StartError as error:
            _log.error("api_keys_kept", reason=error.detail)
        else:
            _log.info("api_keys_read", keys=len(self._entries))
        self._version = version
