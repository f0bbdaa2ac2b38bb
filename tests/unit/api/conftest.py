"""The whole application over a real gateway that has no lane: what tests put into its journal stays there."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from app.api import Context, create_app
from app.journal import Journal
from app.main import Gateway
from app.settings import Settings

NOBODY = "http://127.0.0.1:9"
"""An endpoint on the port of `discard`, where nothing listens."""


@pytest.fixture(scope="module")
async def application(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FastAPI]:
    gateway = Gateway(Settings(data_dir=tmp_path_factory.mktemp("data"), endpoints=(NOBODY,)))
    yield create_app(await gateway.start())
    await gateway.stop()


@pytest.fixture
def context(application: FastAPI) -> Context:
    context: Context = application.state.context
    return context


@pytest.fixture
def journal(context: Context) -> Journal:
    return context.journal


@pytest.fixture
async def client(application: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client
