import httpx
import pytest

from app.ocr.errors import Refused


def test_a_problem_is_told_by_its_code() -> None:
    problem = {"code": "queue_full", "detail": "12 pages wait"}
    refused = Refused.from_response(httpx.Response(429, json=problem, headers={"Retry-After": "7"}))
    assert (refused.reason, refused.detail) == ("queue_full", "12 pages wait")
    assert (refused.passing, refused.retry_after_seconds) == (True, 7)


@pytest.mark.parametrize("body", ["<html>502</html>", "[]", '{"error": "x"}', ""])
def test_what_a_proxy_says_is_told_by_its_status(body: str) -> None:
    refused = Refused.from_response(
        httpx.Response(502, text=body, headers={"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"})
    )
    assert (refused.reason, refused.detail) == ("http_502", "Bad Gateway")
    assert (refused.passing, refused.retry_after_seconds) == (True, 0)


def test_what_the_server_calls_retryable_passes() -> None:
    problem = {"code": "idempotency_in_flight", "detail": "wait", "retryable": True}
    assert Refused.from_response(httpx.Response(409, json=problem)).passing


def test_a_refusal_of_the_file_itself_does_not_pass() -> None:
    assert not Refused.from_response(httpx.Response(415, json={"code": "unsupported_type", "detail": "text"})).passing
