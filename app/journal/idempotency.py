"""Idempotency keys: a POST that is repeated gives what it gave before, and makes nothing twice.

A key is reserved before the body is read. Each document is noted with it in the transaction that writes the document,
so whoever takes a reservation over goes on where the last one stopped.
"""

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, or_, select, update

from app.errors import IdempotencyInFlight, Problem, StoreUnavailable
from app.journal.database import Database, Transaction
from app.journal.tables import gateways, idempotency_keys, tenants

IN_FLIGHT_RETRY_SECONDS = 1
_NOBODY = ""
"""Owner of a reservation that was given back with documents in it: no gateway has this id."""

Result = str | Problem
"""What became of a file: the id of its document, or why it was refused."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A request's right to a key; `number`, which no other request to this gateway has, is the fence."""

    tenant: str
    key: str
    number: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """A key, and what the requests that bore it have made so far."""

    hold: Hold
    answered: bool = False
    """An earlier request was answered in full: nothing is held."""
    fingerprint: str | None = None
    """Of the request that made the documents; None: there are none."""
    results: Mapping[int, Result] = field(default_factory=dict)
    """By the place of the file in the request, from 0."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where it is noted which document a file has become."""

    reservation: Reservation
    index: int
    fingerprint: str


class IdempotencyKeys:
    """The keys that one gateway, `owner`, reserves."""

    def __init__(self, database: Database, owner: str, life_seconds: float) -> None:
        self._database = database
        self._owner = owner
        self._life = timedelta(seconds=life_seconds)
        self._numbers = itertools.count(1)
        self._held: set[Hold] = set()
        self._left: set[Hold] = set()

    @asynccontextmanager
    async def reserve(self, tenant: str, key: str) -> AsyncIterator[Reservation]:
        """Hold a key; at the end it is given back unless `complete` was called. Raises `IdempotencyInFlight`."""
        hold = Hold(tenant, key, next(self._numbers))
        begun = False

        def reserve(transaction: Transaction) -> Reservation:
            nonlocal begun
            begun = True
            return self._reserve(transaction, hold)

        self._held.add(hold)
        try:
            yield await self._database.write(reserve, repeatable=True)
        except IdempotencyInFlight:
            self._held.discard(hold)
            raise
        except StoreUnavailable:
            self._held.discard(hold)
            if begun:  # else the store knows nothing of it, and in a long outage these are many
                self._left.add(hold)  # for the sweep: the caller has waited for the store once
            raise
        finally:
            if hold in self._held:
                self._held.discard(hold)
                self._left.add(hold)
                with suppress(StoreUnavailable):
                    await self.give_back()

    def note(self, transaction: Transaction, slot: Slot, document_id: str) -> None:
        """Raises `IdempotencyInFlight` where another gateway has taken the key over."""
        row = _locked(transaction, self._is_held(slot.reservation.hold))
        if row is None:
            raise IdempotencyInFlight(retry_after=IN_FLIGHT_RETRY_SECONDS)
        results = {**row.results, str(slot.index): document_id}
        _set(transaction, row, fingerprint=slot.fingerprint, results=results)

    async def complete(self, reservation: Reservation, refusals: Mapping[int, Problem]) -> None:
        """Keep the answer: the documents noted and, by the place of their file, `refusals`.

        While the store is away nothing happens, and a repeated request goes on from the documents.
        """
        with suppress(StoreUnavailable):
            await self._database.write(
                lambda transaction: self._complete(transaction, reservation.hold, refusals), repeatable=True
            )

    async def give_back(self) -> None:
        """Give back what requests that are over could not, which would be in flight as long as this gateway lives."""
        left = sorted(self._left, key=lambda hold: (hold.tenant, hold.key, hold.number))
        if left:
            await self._database.write(lambda transaction: self._give_back(transaction, left), repeatable=True)
            self._left.difference_update(left)

    def _reserved(self, hold: Hold) -> None:
        """The store holds the key. Its request may be over by then: it was cancelled, or the store took too long."""
        if hold not in self._held:
            self._left.add(hold)

    def _reserve(self, transaction: Transaction, hold: Hold) -> Reservation:
        mine = {"owner": self._owner, "number": hold.number}
        new = {**mine, "fingerprint": None, "results": {}, "expires_at": transaction.now + self._life}
        transaction.after(lambda: self._reserved(hold))
        transaction.insert_if_absent(tenants, {"name": hold.tenant})
        if transaction.insert_if_absent(idempotency_keys, {"tenant": hold.tenant, "key": hold.key, **new}):
            return Reservation(hold)
        row = _locked(transaction, _is_key(hold.tenant, hold.key))
        if row is None or self._is_in_flight(transaction, row, hold):
            raise IdempotencyInFlight(retry_after=IN_FLIGHT_RETRY_SECONDS)
        if row.expires_at <= transaction.now:
            _set(transaction, row, **new)
            return Reservation(hold)
        if row.owner is None:
            transaction.after(lambda: self._held.discard(hold))
        else:
            _set(transaction, row, **mine)
        results = {int(index): result for index, result in row.results.items()}
        return Reservation(hold, row.owner is None, row.fingerprint, results)

    def _is_in_flight(self, transaction: Transaction, row: Row[Any], hold: Hold) -> bool:
        if row.owner == self._owner:
            # Not held: its request is over but could not tell the store. The same number: this is the same transaction.
            return row.number != hold.number and Hold(row.tenant, row.key, row.number) in self._held
        return bool(transaction.rows(select(gateways.c.id).where(gateways.c.id == row.owner)))

    def _complete(self, transaction: Transaction, hold: Hold, refusals: Mapping[int, Problem]) -> None:
        row = _locked(transaction, self._is_held(hold))
        if row is not None:
            refused = {str(index): problem for index, problem in refusals.items()}
            _set(transaction, row, owner=None, results={**row.results, **refused})
            transaction.after(lambda: self._held.discard(hold))

    def _give_back(self, transaction: Transaction, holds: list[Hold]) -> None:
        for hold in holds:
            row = _locked(transaction, self._is_held(hold))
            if row is None:
                continue
            if row.results:
                _set(transaction, row, owner=_NOBODY)
            else:
                transaction.run(delete(idempotency_keys).where(_is_key(hold.tenant, hold.key)))

    def _is_held(self, hold: Hold) -> ColumnElement[bool]:
        return and_(
            _is_key(hold.tenant, hold.key),
            idempotency_keys.c.owner == self._owner,
            idempotency_keys.c.number == hold.number,
        )


def forget_expired(transaction: Transaction) -> None:
    """Erase the keys whose time is over, but for those in flight."""
    in_flight = idempotency_keys.c.owner.in_(select(gateways.c.id))
    transaction.run(
        delete(idempotency_keys).where(
            idempotency_keys.c.expires_at <= transaction.now, or_(idempotency_keys.c.owner.is_(None), ~in_flight)
        )
    )


def _is_key(tenant: str, key: str) -> ColumnElement[bool]:
    return and_(idempotency_keys.c.tenant == tenant, idempotency_keys.c.key == key)


def _locked(transaction: Transaction, condition: ColumnElement[bool]) -> Row[Any] | None:
    return transaction.one_or_none(select(idempotency_keys).where(condition).with_for_update())


def _set(transaction: Transaction, row: Row[Any], **values: Any) -> None:
    transaction.run(update(idempotency_keys).where(_is_key(row.tenant, row.key)).values(values))
