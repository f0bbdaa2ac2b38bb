"""Every error as a problem, through the whole application."""

from typing import Annotated

import httpx
import pytest
from fastapi import FastAPI, Query
from starlette.requests import ClientDisconnect

from app.errors import QueueFull


@pytest.fixture(scope="module", autouse=True)
def failing_route(application: FastAPI) -> None:
    @application.get("/fails/{how}")
    async def fails(how: str, number: Annotated[int, Query(le=3)] = 1) -> None:
        raise {
            "unforeseen": RuntimeError(f"no such file: {__file__}"),
            "full": QueueFull("12 pages wait", retry_after=9),
            "left": ClientDisconnect(),
        }[how]


def assert_problem(response: httpx.Response, status: int, code: str) -> None:
    problem = response.json()
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["type"] == f"urn:pagefleet:error:{code}"
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-request-id"]


async def test_an_unforeseen_fault_has_a_code_and_tells_nothing(client: httpx.AsyncClient) -> None:
    response = await client.get("/fails/unforeseen", headers={"X-Request-Id": "job 7"})
    assert_problem(response, 500, "internal_error")
    assert response.headers["x-request-id"] == "job 7"
    assert "RuntimeError" not in response.text
    assert __file__ not in response.text


async def test_a_wait_that_helps_is_told_as_a_header_too(client: httpx.AsyncClient) -> None:
    response = await client.get("/fails/full")
    assert_problem(response, 429, "queue_full")
    assert (response.headers["retry-after"], response.json()["retry_after"]) == ("9", 9)


async def test_a_value_that_an_option_can_not_have_names_the_option(client: httpx.AsyncClient) -> None:
    response = await client.get("/fails/full", params={"number": "4"})
    assert_problem(response, 422, "option_invalid")
    assert response.json()["option"] == "number"
    assert response.json()["detail"].startswith("number: ")


async def test_what_is_not_there_is_not_found(client: httpx.AsyncClient) -> None:
    assert_problem(await client.get("/nothing/here"), 404, "not_found")


async def test_a_method_that_a_resource_has_not_is_told_with_those_that_it_has(client: httpx.AsyncClient) -> None:
    response = await client.put("/lanes")
    assert_problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "GET"


async def test_a_client_that_has_left_is_no_fault_of_the_service(client: httpx.AsyncClient) -> None:
    response = await client.get("/fails/left")
    assert (response.status_code, response.content) == (400, b"")


async def test_a_problem_has_no_body_for_head(client: httpx.AsyncClient) -> None:
    response = await client.head("/nothing/here")
    assert (response.status_code, response.content) == (404, b"")
    assert response.headers["content-type"] == "application/problem+json"


async def test_a_foreign_host_is_refused_before_anything_is_looked_up(client: httpx.AsyncClient) -> None:
    response = await client.get("/nothing/here", headers={"Host": "attacker.example"})
    assert_problem(response, 403, "forbidden")
