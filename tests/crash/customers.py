"""Users of the service, and what each wants of one document."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import count
from typing import Any
from uuid import uuid4

from tests.crash.codes import PageCode
from tests.crash.following import Follower
from tests.crash.pdfs import coded_pdf
from tests.crash.service import Service

AT_ONCE = 12
PAGES = (*[(1, 5)] * 6, (8, 20), (20, 60))
"""Fewest and most of a document: letters, mostly; at times a book."""
MAX_PATIENCE_SECONDS = 3.0
UPLOAD_SECONDS = 0.3


class Wish(StrEnum):
    READ = "read"
    CANCEL = "cancel"
    DELETE = "delete"
    RETRY = "retry"
    """The pages are hard; those that failed shall be tried again."""


WISHES = (*[Wish.READ] * 5, Wish.CANCEL, Wish.DELETE, *[Wish.RETRY] * 2)


@dataclass(frozen=True)
class Order:
    number: int
    pages: int
    wish: Wish
    patience_seconds: float
    """After which a document is cancelled or deleted."""

    @property
    def codes(self) -> dict[int, PageCode]:
        """By page number."""
        hard = self.wish is Wish.RETRY
        return {page: PageCode(self.number, page, hard) for page in range(1, self.pages + 1)}


def orders(rng: random.Random) -> Iterator[Order]:
    for number in count(1):
        pages = rng.randint(*rng.choice(PAGES))
        yield Order(number, pages, rng.choice(WISHES), rng.uniform(0, MAX_PATIENCE_SECONDS))


class Customer:
    """Posts one document, follows it to its end, and does with it meanwhile what the order says."""

    def __init__(self, service: Service, order: Order) -> None:
        self.order = order
        self.document_id: str | None = None
        """As soon as the service has answered."""
        self.follower: Follower | None = None
        self.deleted = False
        self.retried = False
        self.done = False
        self._service = service

    async def run(self) -> None:
        self.document_id = await self._post()
        self.follower = Follower(self._service, self.document_id)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.follower.to_the_end())
            if self.order.wish in (Wish.CANCEL, Wish.DELETE):
                group.create_task(self._stop())
        if self.order.wish is Wish.RETRY and self._end["pages"]["failed"]:
            await self._retry()
            await self.follower.to_the_end()
        self.done = True

    @property
    def _end(self) -> Any:
        assert self.follower is not None
        return self.follower.events[-1].data["document"]

    async def _post(self) -> str:
        pdf = coded_pdf(self.order.codes.values())
        headers = {"Content-Type": "application/pdf", "Idempotency-Key": f'"{uuid4()}"'}
        response, _ = await self._service.request("POST", "/documents", partial(_slowly, pdf), headers=headers)
        assert response.status_code == 202, response.text
        return str(response.json()["id"])

    async def _stop(self) -> None:
        await asyncio.sleep(self.order.patience_seconds)
        path = f"/documents/{self.document_id}"
        if self.order.wish is Wish.CANCEL:
            response, _ = await self._service.request("POST", f"{path}/cancel")
            assert response.status_code == 200, response.text
        else:
            response, repeated = await self._service.request("DELETE", path)
            assert response.status_code == 204 or (repeated and response.status_code == 404), response.text
            self.deleted = True

    async def _retry(self) -> None:
        self.retried = True
        response, repeated = await self._service.request("POST", f"/documents/{self.document_id}/retry")
        assert response.status_code == 202 or (repeated and response.status_code == 409), response.text


async def _slowly(body: bytes) -> AsyncIterator[bytes]:
    """In two parts, so that there is time to kill who receives it."""
    half = len(body) // 2
    yield body[:half]
    await asyncio.sleep(UPLOAD_SECONDS)
    yield body[half:]


class Trade:
    """Customers, a few at a time, until it is closed."""

    def __init__(self, service: Service, rng: random.Random) -> None:
        self.customers: list[Customer] = []
        self._service = service
        self._orders = orders(rng)
        self._open = True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._serve())

    def close(self) -> None:
        """Let nobody in; who is there is served to the end."""
        self._open = False

    async def _serve(self) -> None:
        while self._open:
            customer = Customer(self._service, next(self._orders))
            self.customers.append(customer)
            await customer.run()
