"""API keys at a real gateway: who gets in, who sees what, and what of it is logged."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.api.keys import KeyEntry, as_yaml, new_key
from tests.pdfs import numbered_pdf
from tests.standins import StandIn
from tests.system.gateway import END_SECONDS, Gateway, running_gateway
from tests.waiting import until

PDF = numbered_pdf(2)
NAMES = {
    "anna": ("acme", ["read", "write"]),
    "ben": ("umbrella", ["read", "write"]),
    "drop-box": ("acme", ["write"]),
    "viewer": ("acme", ["read"]),
    "chief": ("acme", ["admin"]),
}


@dataclass(frozen=True, slots=True)
class Site:
    gateway: Gateway
    keys: dict[str, str]
    """By name."""
    entries: dict[str, KeyEntry]
    file: Path
    logs: Path

    async def call(self, name: str | None, method: str, path: str, **request: Any) -> httpx.Response:
        headers = {} if name is None else {"Authorization": f"Bearer {self.keys.get(name, name)}"}
        return await self.gateway.client.request(method, path, headers=headers | request.pop("headers", {}), **request)

    async def upload(self, name: str) -> dict[str, Any]:
        response = await self.call(name, "POST", "/documents", files={"file": ("a.pdf", PDF)})
        assert response.status_code == 202, response.text
        document: dict[str, Any] = response.json()
        return document

    async def events(self, name: str, document: dict[str, Any]) -> list[str]:
        response = await self.call(name, "GET", document["links"]["events"], headers={"Accept": "application/x-ndjson"})
        return [json.loads(line)["event"] for line in response.text.splitlines()]


def outcome(response: httpx.Response) -> tuple[int, str | None]:
    return response.status_code, response.json()["code"] if response.is_error else None


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("keys")
    made = {name: new_key(tenant, name, scopes) for name, (tenant, scopes) in NAMES.items()}
    entries = {name: entry for name, (_, entry) in made.items()}
    file, logs = folder / "keys.yaml", folder / "log"
    file.write_text("".join(map(as_yaml, entries.values())))
    environment = {
        "PAGEFLEET_API_KEYS_FILE": str(file),
        "PAGEFLEET_HOST": "0.0.0.0",
        "PAGEFLEET_LOG_LEVEL": "debug",
        "PAGEFLEET_UPLOAD_IDLE_SECONDS": "1",
    }
    async with (
        StandIn() as replica,
        running_gateway(folder / "data", [replica.url], environment, logs=logs) as gateway,
    ):
        yield Site(gateway, {name: key for name, (key, _) in made.items()}, entries, file, logs)


async def test_without_a_key_or_with_a_wrong_one_nothing_is_told(site: Site) -> None:
    document = await site.upload("anna")
    for path in ("/documents", document["links"]["self"], document["links"]["events"], "/lanes", "/capacity"):
        for name in (None, "pf_wrong"):
            response = await site.call(name, "GET", path)
            assert outcome(response) == (401, "unauthorized")
            assert response.headers["www-authenticate"] == "Bearer"
    refused = await site.gateway.client.post("/documents", content=b"%PDF-")
    assert outcome(refused) == (401, "unauthorized")
    for path in ("/livez", "/readyz", "/metrics", "/docs", "/openapi.json"):
        assert (await site.call(None, "GET", path, headers={"Host": "10.0.0.1"})).status_code == 200


async def test_a_key_does_what_its_scopes_say(site: Site) -> None:
    document = await site.upload("drop-box")
    path = document["links"]["self"]
    assert outcome(await site.call("drop-box", "GET", path)) == (403, "forbidden")
    assert outcome(await site.call("viewer", "POST", f"{path}/cancel")) == (403, "forbidden")
    assert outcome(await site.call("viewer", "DELETE", path)) == (403, "forbidden")
    assert outcome(await site.call("viewer", "POST", "/documents", content=b"%PDF-")) == (403, "forbidden")
    assert await site.events("viewer", document) == ["document", "page", "page", "end"]
    assert (await site.call("chief", "DELETE", path)).status_code == 204


async def test_tenants_do_not_see_each_other(site: Site) -> None:
    own, others = await site.upload("anna"), await site.upload("ben")
    assert (await site.events("anna", own))[-1] == "end"
    assert (await site.events("ben", others))[-1] == "end"
    path = others["links"]["self"]
    calls = [
        *(("GET", path + suffix) for suffix in ("", "/events", "/result", "/pages", "/pages/1", "/pages/1/image")),
        *(("GET", f"{path}/source"), ("POST", f"{path}/retry"), ("POST", f"{path}/cancel"), ("DELETE", path)),
    ]
    for method, call in calls:
        assert outcome(await site.call("anna", method, call)) == (404, "not_found"), call
    for name, seen in (("anna", own), ("ben", others)):
        listed = (await site.call(name, "GET", "/documents", params={"limit": "1000"})).json()["documents"]
        assert {own["id"], others["id"]} & {document["id"] for document in listed} == {seen["id"]}
    assert (await site.call("ben", "GET", f"{path}/source")).content == PDF
    assert (site.gateway.data_dir / "blobs" / "v1" / "umbrella" / others["id"] / "source").exists()


async def test_keys_change_while_the_gateway_runs(site: Site) -> None:
    before = site.file.read_text()
    key, entry = new_key("acme", "new", ["read"])
    site.file.write_text(before + as_yaml(entry))
    assert (await site.call(key, "GET", "/documents")).status_code == 200
    site.file.write_text("- name: [\n")
    assert (await site.call("anna", "GET", "/documents")).status_code == 200
    site.file.write_text(before)
    assert outcome(await site.call(key, "GET", "/documents")) == (401, "unauthorized")


async def test_logs_name_the_key_and_never_show_it(site: Site) -> None:
    document = await site.upload("anna")
    lines = [json.loads(line) for line in site.logs.read_text().splitlines() if line.startswith("{")]
    (accepted,) = [line for line in lines if line.get("document_id") == document["id"] and "caller" in line]
    assert accepted["caller"] == "anna"
    text = site.logs.read_text()
    assert not any(key in text for key in site.keys.values())
    assert not any(entry.sha256 in text for entry in site.entries.values())


async def test_an_upload_that_stops_coming_is_ended_and_leaves_nothing(site: Site) -> None:
    url = site.gateway.client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    lines = ("POST /documents HTTP/1.1", "Host: a", f"Authorization: Bearer {site.keys['anna']}", "Content-Length: 99")
    writer.write("\r\n".join([*lines, "", "%PDF-"]).encode())
    await writer.drain()
    await until(lambda: any((site.gateway.data_dir / "spool").iterdir()))
    head, body = [await asyncio.wait_for(reader.readuntil(end), END_SECONDS) for end in (b"\r\n\r\n", b"}")]
    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body)["code"] == "upload_timeout"
    assert not any((site.gateway.data_dir / "spool").iterdir())
    writer.close()


@pytest.fixture
def environment() -> dict[str, str]:
    return dict(os.environ)


async def run(*arguments: str, environment: dict[str, str]) -> tuple[int, str, str]:
    """A command of `pagefleet`: exit status, standard output, standard error."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    out, err = await asyncio.wait_for(process.communicate(), END_SECONDS)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_files_are_read_over_a_server_that_wants_a_key(
    site: Site, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "a.pdf").write_bytes(numbered_pdf(1))
    command = ("ocr", str(tmp_path / "a.pdf"), "--server", str(site.gateway.client.base_url))
    status, out, _ = await run(*command, environment={**environment, "PAGEFLEET_API_KEY": site.keys["anna"] + "\n"})
    assert (status, bool(out.strip())) == (0, True)
    for key, told in (("", "set PAGEFLEET_API_KEY"), ("pf_wrong", "does not take the API key")):
        status, out, err = await run(*command, environment={**environment, "PAGEFLEET_API_KEY": key})
        assert (status, out) == (2, "")
        assert told in err
        assert "pf_wrong" not in err
    status, out, err = await run(*command, environment={**environment, "PAGEFLEET_API_KEY": site.keys["viewer"]})
    assert (status, out) == (1, "")
    assert "scope 'write'" in err


async def test_a_gateway_of_the_commands_own_needs_no_key_whatever_the_environment_says(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "a.pdf").write_bytes(numbered_pdf(1))
    async with StandIn() as replica:
        environment |= {
            "PAGEFLEET_ENDPOINTS": replica.url,
            "PAGEFLEET_API_KEY": "pf_wrong",
            "PAGEFLEET_API_KEYS_FILE": str(tmp_path / "not-there"),
            "PAGEFLEET_BLOB_URL": str(tmp_path / "not-there"),
            "PAGEFLEET_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
        }
        status, out, err = await run("ocr", str(tmp_path / "a.pdf"), environment=environment)
    assert (status, bool(out.strip())) == (0, True), err
    assert not (tmp_path / "not-there").exists()


async def test_a_file_of_keys_that_is_broken_is_told_at_start(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "keys.yaml").write_text("- name: anna\n  tenant: acme\n  scopes: [read]\n  sha256: 12ab\n")
    environment["PAGEFLEET_API_KEYS_FILE"] = str(tmp_path / "keys.yaml")
    status, out, err = await run("serve", "--port", "0", "--data-dir", str(tmp_path / "data"), environment=environment)
    assert (status, out) == (2, "")
    assert "entry 1 (anna): sha256" in err
    assert "12ab" not in err
    assert not (tmp_path / "data").exists()
