"""Who may call a route: `Reader` and `Writer` are parameters that admit only those with the scope."""

from typing import Annotated

import structlog
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes
from fastapi.security.utils import get_authorization_scheme_param

from app.api.callers import ANONYMOUS, Caller, Scope
from app.api.context import Context, Ctx
from app.errors import Unauthorized

_bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key, as `pagefleet keys new` makes it")


async def authenticated(
    request: Request,
    ctx: Ctx,
    needed: SecurityScopes,
    _shown: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],  # for the API's own page
) -> Caller:
    """The caller, whose key's name goes into the log lines of the request. Raises `Unauthorized` and `Forbidden`."""
    caller = await _identified(ctx, request.headers.get("Authorization"))
    if caller.name is not None:
        structlog.contextvars.bind_contextvars(caller=caller.name)
    for scope in needed.scopes:
        caller.require(Scope(scope))
    return caller


async def _identified(ctx: Context, authorization: str | None) -> Caller:
    if ctx.keys is None or (authorization is None and ctx.settings.allow_anonymous):
        return ANONYMOUS
    if authorization is None:
        raise Unauthorized()
    scheme, key = get_authorization_scheme_param(authorization)
    if scheme.lower() != "bearer" or not key:
        raise Unauthorized("the Authorization header is not of the form `Bearer KEY`")
    caller = await ctx.keys.caller(key.strip())
    if caller is None:
        raise Unauthorized("the API key is not known here")
    return caller


Reader = Annotated[Caller, Security(authenticated, scopes=[Scope.READ.value])]
Writer = Annotated[Caller, Security(authenticated, scopes=[Scope.WRITE.value])]
