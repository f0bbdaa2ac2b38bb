"""Who may call which route, through the whole application."""

from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.api import create_app
from app.api.app import ROUTERS
from app.api.auth import Reader
from app.api.keys import as_yaml, new_key
from app.main import Gateway
from app.settings import Settings
from tests.journals import new_document
from tests.unit.api.conftest import NOBODY

OPEN = {"/livez", "/readyz", "/metrics"}
OPEN_PAGES = {"/docs", "/docs/oauth2-redirect", "/openapi.json", "/redoc"}
SCOPES = ("read", "write", "admin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("auth")


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """One key a scope; their entries are in the file `keys.yaml`."""
    made = {scope: new_key("acme", f"the-{scope}", [scope]) for scope in SCOPES}
    (folder / "keys.yaml").write_text("".join(as_yaml(entry) for _, entry in made.values()))
    return {scope: key for scope, (key, _) in made.items()}


@pytest.fixture(scope="module", params=[False, True], ids=["keys only", "anonymous too"])
def anonymous(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
async def application(folder: Path, keys: Mapping[str, str], anonymous: bool) -> AsyncIterator[FastAPI]:
    settings = Settings(
        data_dir=folder / str(anonymous),
        endpoints=(NOBODY,),
        api_keys_file=folder / "keys.yaml",
        allow_anonymous=anonymous,
    )
    gateway = Gateway(settings)
    application = create_app(await gateway.start())

    @application.get("/who")
    async def who(caller: Reader) -> dict[str, Any]:
        return {"tenant": caller.tenant, "bound": structlog.contextvars.get_contextvars().get("caller")}

    yield application
    await gateway.stop()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def code_of(response: httpx.Response) -> str | None:
    return response.json()["code"] if response.is_error else None


def routes() -> list[APIRoute]:
    found = [route for router in ROUTERS for route in router.routes]
    assert all(isinstance(route, APIRoute) for route in found)
    return [route for route in found if isinstance(route, APIRoute)]


def calls(paths: Iterable[APIRoute]) -> Iterable[tuple[str, str]]:
    """Method and path of something that isn't there, for each route."""
    for route in paths:
        yield from ((method, route.path.format(document_id="nope", number=1)) for method in route.methods or ())


CALLS = [call for call in calls(routes()) if call[1] not in OPEN]


# keys


async def test_every_route_is_known_here(application: FastAPI) -> None:
    described = set(application.openapi()["paths"])
    assert described == {route.path for route in routes()} | {"/who"}
    pages = {path for path in (getattr(route, "path", None) for route in application.routes) if path is not None}
    assert pages - described == OPEN_PAGES


@pytest.mark.parametrize("anonymous", [False], indirect=True)
@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_every_route_but_the_probes_asks_for_a_key_first(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    response = await client.request(method, path, params={"limit": "no number"})
    assert (response.status_code, code_of(response)) == (401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_reading_and_writing_need_their_scope(
    client: httpx.AsyncClient, keys: Mapping[str, str], method: str, path: str
) -> None:
    needed, other = ("read", "write") if method == "GET" else ("write", "read")
    refused = await client.request(method, path, headers=bearer(keys[other]))
    assert (refused.status_code, code_of(refused)) == (403, "forbidden")
    assert needed in refused.json()["detail"]
    for scope in (needed, "admin"):
        assert (await client.request(method, path, headers=bearer(keys[scope]))).status_code not in (401, 403)


@pytest.mark.parametrize("path", sorted(OPEN | OPEN_PAGES))
async def test_probes_and_the_page_of_the_api_need_no_key_and_take_any_host(
    client: httpx.AsyncClient, path: str
) -> None:
    for headers in ({}, bearer("wrong")):
        assert (await client.get(path, headers={"Host": "10.0.0.1", **headers})).status_code == 200


@pytest.mark.parametrize(
    "authorization", ["Bearer wrong", "Bearer", "Bearer ", "", "wrong", "Basic YTpi", "Bearer schlüssel", "Token {key}"]
)
async def test_a_wrong_key_is_no_key_and_not_anonymous_either(
    client: httpx.AsyncClient, keys: Mapping[str, str], authorization: str
) -> None:
    header = authorization.format(key=keys["read"]).encode("latin-1")
    response = await client.get("/documents", headers={b"Authorization": header})
    assert (response.status_code, code_of(response)) == (401, "unauthorized")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
async def test_the_name_of_a_key_is_bound_to_the_logs_of_its_request(
    client: httpx.AsyncClient, keys: Mapping[str, str], scheme: str
) -> None:
    response = await client.get("/who", headers={"Authorization": f"{scheme} {keys['read']}"})
    assert response.json() == {"tenant": "acme", "bound": "the-read"}


@pytest.mark.parametrize("anonymous", [True], indirect=True)
async def test_where_anonymous_callers_are_allowed_they_read_and_write_as_the_default_tenant(
    client: httpx.AsyncClient,
) -> None:
    assert (await client.get("/who")).json() == {"tenant": "default", "bound": None}
    assert code_of(await client.post("/documents", content=b"")) == "file_missing"


async def test_a_stream_in_the_answer_to_an_upload_is_reading_too(
    client: httpx.AsyncClient, keys: Mapping[str, str]
) -> None:
    headers = {**bearer(keys["write"]), "Accept": "text/event-stream"}
    assert code_of(await client.post("/documents", content=b"%PDF-", headers=headers)) == "forbidden"


async def test_the_api_describes_the_scopes_that_it_asks_for(application: FastAPI) -> None:
    described = application.openapi()
    assert described["components"]["securitySchemes"]["ApiKey"]["scheme"] == "bearer"
    assert described["paths"]["/documents"]["get"]["security"] == [{"ApiKey": ["read"]}]
    assert described["paths"]["/documents"]["post"]["security"] == [{"ApiKey": ["write"]}]
    assert "security" not in described["paths"]["/livez"]["get"]


# tenants


DOCUMENT_CALLS = [call for call in CALLS if "nope" in call[1]]


@pytest.mark.parametrize(("method", "path"), DOCUMENT_CALLS)
async def test_a_document_of_another_tenant_is_not_there(
    application: FastAPI, client: httpx.AsyncClient, keys: Mapping[str, str], method: str, path: str
) -> None:
    document = await application.state.context.journal.add_document(new_document(tenant="umbrella"))
    response = await client.request(method, path.replace("nope", document.id), headers=bearer(keys["admin"]))
    assert (response.status_code, code_of(response)) == (404, "not_found")
    assert await application.state.context.journal.document(document.id) == document


async def test_a_list_holds_the_documents_of_one_tenant(
    application: FastAPI, client: httpx.AsyncClient, keys: Mapping[str, str]
) -> None:
    journal = application.state.context.journal
    own = [(await journal.add_document(new_document(tenant=tenant))).id for tenant in ("acme", "umbrella", "acme")]
    for cursor in ({}, {"cursor": str(own[1])[:-12] + "f" * 12}):
        response = await client.get("/documents", params=cursor, headers=bearer(keys["read"]))
        listed = [document["id"] for document in response.json()["documents"]]
        assert own[1] not in listed
        assert own[0] in listed
