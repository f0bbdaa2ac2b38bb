"""The ASGI application: routers, errors and middleware around one context."""

from fastapi import FastAPI

import app
from app.api import capacity, documents, events, lanes, pages, probes, problems, results
from app.api.context import Context
from app.api.middleware import CloseUnread, DrainedInTime, HeadAsGet, LoopbackOnly, RequestId

ROUTERS = tuple(module.router for module in (documents, events, results, pages, lanes, capacity, probes))


def create_app(context: Context) -> FastAPI:
    settings = context.settings
    application = FastAPI(
        title="pagefleet",
        version=app.__version__,
        description="Turns PDFs and scans into text with a fleet of OCR replicas.",
        root_path=settings.root_path,
        redirect_slashes=False,  # the redirect would name a host
    )
    application.state.context = context
    for router in ROUTERS:
        application.include_router(router)
    problems.install(application)
    application.add_middleware(HeadAsGet)
    if context.keys is None and not settings.allow_anonymous:
        application.add_middleware(LoopbackOnly)
    application.add_middleware(CloseUnread)
    application.add_middleware(DrainedInTime, draining=context.draining)
    application.add_middleware(RequestId)
    return application
