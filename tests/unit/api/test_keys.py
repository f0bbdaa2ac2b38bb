import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from app.api import keys as keys_module
from app.api.callers import Caller, Scope
from app.api.keys import KeyEntry, Keys, as_yaml, new_key, read_keys
from app.errors import Forbidden, StartError
from tests.waiting import until

DEADLINE_SECONDS = 10
SHA256 = "0123456789abcdef" * 4


def entry_of(**values: Any) -> dict[str, Any]:
    return {"name": "anna", "tenant": "acme", "scopes": ["read"], "sha256": SHA256, **values}


def write(path: Path, *entries: KeyEntry) -> Path:
    path.write_text("".join(map(as_yaml, entries)) or "[]")
    return path


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


# making keys


def test_a_new_key_opens_what_its_entry_says(tmp_path: Path) -> None:
    key, entry = new_key("acme", "anna", ["read", "admin"])
    assert read_keys(write(tmp_path / "keys.yaml", entry)) == (entry,)
    assert entry.caller == Caller("acme", "anna", frozenset({Scope.READ, Scope.ADMIN}))
    assert key not in as_yaml(entry)


def test_keys_and_the_names_made_for_them_differ() -> None:
    made = [new_key("acme", None, ["read"]) for _ in range(20)]
    assert len({key for key, _ in made}) == len({entry.name for _, entry in made}) == 20
    assert all(len(key) >= 43 for key, _ in made)  # 256 bits in base64


@pytest.mark.parametrize("tenant", ["", "..", "a/b", "a b", "ä", "x" * 129])
def test_a_tenant_is_named_like_a_file(tenant: str) -> None:
    with pytest.raises(StartError, match="a tenant is named by"):
        new_key(tenant, None, ["read"])


# reading files


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "no list"),
        ("keys: []", "no list"),
        ("- name: [", "no YAML at line"),
        ("- name: \x07", "no YAML"),
        ("- name: 2026-02-30", "no YAML"),
        ("[" * 1000, "no YAML"),
        ([entry_of(), entry_of(name="ben", scopes=["all"], sha256="1" * 64)], r"entry 2 \(ben\): scopes"),
        ([entry_of(scopes=[])], r"entry 1 \(anna\): scopes"),
        ([entry_of(name="bell\x07")], "printable"),
        ([entry_of(name=7)], "entry 1: name"),
        ([entry_of(tenant="a/b")], "a tenant is named by"),
        ([entry_of(sha256=SHA256[1:])], "sha256"),
        ([entry_of(key="pf_secret")], "key: Extra inputs"),
        ([{"name": "anna"}], r"entry 1 \(anna\): tenant: Field required"),
        (["anna"], "entry 1"),
        ([entry_of(), entry_of(sha256="1" * 64)], "the name anna is there 2 times"),
        ([entry_of(), entry_of(name="ben")], "anna and ben are the same key"),
    ],
)
def test_a_file_that_is_malformed_names_the_entry_at_fault_but_never_tells_a_hash(
    tmp_path: Path, content: Any, match: str
) -> None:
    path = written(tmp_path / "keys.yaml", content)
    with pytest.raises(StartError, match=match) as caught:
        read_keys(path)
    assert SHA256[1:] not in caught.value.detail
    assert "pf_secret" not in caught.value.detail


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="No such file"):
        Keys(tmp_path / "keys.yaml")


# using them


async def test_a_key_is_known_by_its_hash_alone(tmp_path: Path) -> None:
    (key, entry), (other, other_entry) = (new_key(tenant, None, ["read"]) for tenant in ("acme", "umbrella"))
    keys = Keys(write(tmp_path / "keys.yaml", entry, other_entry))
    assert await keys.caller(key) == entry.caller
    assert await keys.caller(other) == other_entry.caller
    for wrong in ("", key[:-1], key + "x", key.upper(), entry.sha256, "schlüssel"):
        assert await keys.caller(wrong) is None


async def test_a_new_version_of_the_file_counts_at_once(tmp_path: Path) -> None:
    (old, old_entry), (new, new_entry) = (new_key("acme", None, ["read"]) for _ in range(2))
    path = write(tmp_path / "keys.yaml", old_entry)
    keys = Keys(path)
    write(tmp_path / "next", new_entry).replace(path)  # as Kubernetes does it
    assert await keys.caller(old) is None
    assert await keys.caller(new) == new_entry.caller
    write(path)
    assert await keys.caller(new) is None


async def test_a_broken_version_of_the_file_leaves_the_keys_that_were(tmp_path: Path) -> None:
    key, entry = new_key("acme", None, ["read"])
    path = write(tmp_path / "keys.yaml", entry)
    keys = Keys(path)
    with capture_logs() as lines:
        path.write_text(f"- name: anna\n  sha256: {SHA256}\n")
        assert [await keys.caller(key) for _ in range(3)] == [entry.caller] * 3
        path.unlink()
        assert [await keys.caller(key) for _ in range(3)] == [entry.caller] * 3
    assert [(line["event"], line["log_level"]) for line in lines] == [("api_keys_kept", "error")] * 2  # once a version
    assert SHA256 not in str(lines)
    write(path)
    os.utime(path, ns=(0, 0))
    assert await keys.caller(key) is None


async def test_of_two_versions_that_follow_each_other_the_newer_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that was revoked must not come back because its last version took long to read."""
    (revoked, entry), (key, new_entry) = (new_key("acme", None, ["read"]) for _ in range(2))
    path = write(tmp_path / "keys.yaml", entry)
    keys = Keys(path)
    read, reading, go_on = read_keys, threading.Event(), threading.Event()

    def read_slowly(path: Path) -> tuple[KeyEntry, ...]:
        entries = read(path)
        if entries == (entry, new_entry):
            reading.set()
            go_on.wait(DEADLINE_SECONDS)
        return entries

    monkeypatch.setattr(keys_module, "read_keys", read_slowly)
    write(path, entry, new_entry)
    first = asyncio.create_task(keys.caller(key))
    await until(reading.is_set)
    write(path, new_entry)
    second = asyncio.create_task(keys.caller(key))
    await asyncio.sleep(0.05)
    go_on.set()

    assert [await first, await second] == [new_entry.caller] * 2
    assert await keys.caller(revoked) is None


# scopes


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ({Scope.READ}, {Scope.READ}),
        ({Scope.WRITE}, {Scope.WRITE}),
        ({Scope.READ, Scope.WRITE}, {Scope.READ, Scope.WRITE}),
        ({Scope.ADMIN}, set(Scope)),
    ],
)
def test_admin_includes_the_other_scopes_and_write_does_not_include_read(
    scopes: set[Scope], allowed: set[Scope]
) -> None:
    caller = Caller("acme", "anna", frozenset(scopes))
    for scope in Scope:
        if scope in allowed:
            caller.require(scope)
        else:
            with pytest.raises(Forbidden, match=scope.value):
                caller.require(scope)
