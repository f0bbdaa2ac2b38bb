"""Every error as an RFC 9457 `application/problem+json` answer."""

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from app.errors import (
    InternalError,
    MethodNotAllowed,
    MultipartInvalid,
    NotFound,
    OptionInvalid,
    PagefleetError,
    RequestError,
    Unauthorized,
)

MEDIA_TYPE = "application/problem+json"


def problem_response(error: PagefleetError) -> Response:
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    if "retry_after" in error.extra:
        headers["Retry-After"] = str(error.extra["retry_after"])
    return JSONResponse(error.problem(), error.status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """No error leaves the service without a code, and none with a path or a stack trace."""
    app.add_exception_handler(PagefleetError, _own)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unforeseen)


async def _own(_request: Request, error: Exception) -> Response:
    assert isinstance(error, PagefleetError)
    return problem_response(error)


async def _validation(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fault = error.errors()[0]
    name = str(fault["loc"][-1])
    return problem_response(OptionInvalid(f"{name}: {fault['msg']}", option=name))


async def _http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known: dict[int, type[RequestError]] = {404: NotFound, 405: MethodNotAllowed, 400: MultipartInvalid}
    kind = known.get(error.status_code, RequestError)
    response = problem_response(kind(error.detail if kind is not NotFound else ""))
    response.status_code = error.status_code
    if error.headers:
        response.headers.update(error.headers)
    return response


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=HTTPStatus.BAD_REQUEST)  # nobody reads it


async def _unforeseen(request: Request, _error: Exception) -> Response:
    response = problem_response(InternalError())
    response.headers["X-Request-Id"] = request.state.request_id
    return response
