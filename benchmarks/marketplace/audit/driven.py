"""The audit behind a run of the driver: it waits until nothing is under way, reads all, and judges.

Calls for later go on while it reads, such as those that look for abandoned carts. So it reads the logs and the state
again and again, until two readings agree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from benchmarks.driver.workload import Audit, Loading
from benchmarks.marketplace import events, settings
from benchmarks.marketplace.audit.audit import audit, checked
from benchmarks.marketplace.audit.criteria.copies_at_end import violations as differing_copies
from benchmarks.marketplace.audit.history import History
from benchmarks.marketplace.audit.reading import CannotRead, calls_of, history_of, state_by_requests, state_here
from benchmarks.marketplace.audit.run import Run, Terms
from benchmarks.marketplace.audit.state import State
from benchmarks.marketplace.record import Charge, Record
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.cart.rows import checkouts
from benchmarks.marketplace.services.customer.rows import customer
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.seller.rows import seller
from styx.client.base import Client
from styx.client.embedded import EmbeddedClient
from styx.model.app import App

ATTEMPTS_MAX: Final = 60
"""Readings until nothing was told between two of them."""
PAUSE_S: Final = 1.0


def terms_here() -> Terms:
    """The settings of the application in this process's environment, which must be those of the deployment."""
    return Terms(
        replication=Replication(settings.REPLICATION),
        archive=settings.ARCHIVE,
        rejected=settings.REJECTED,
        seed=settings.SEED,
    )


def loaded_state(loadings: Iterable[Loading]) -> State:
    """The state that a loader makes."""
    made = State()
    for loading in loadings:
        if loading.table is None:
            for key, value in loading.pairs:
                made.put_value(loading.operator.name, key, value)
            continue
        rows: dict[object, list[object]] = {}
        for key, row in loading.pairs:
            rows.setdefault(key, []).append(row)
        for key, those in rows.items():
            made.put_rows(loading.table, key, those)
    return made


async def judged(
    client: Client,
    app: App,
    loadings: Iterable[Loading],
    record: Record,
    book: Sequence[Charge] | None,
    *,
    complete: bool = False,
) -> Audit:
    """Reads and judges. `book` is None without a provider; `complete`: this run is the first one on what was loaded."""
    before = loaded_state(loadings)
    terms = terms_here()
    try:
        history, after = await _settled(client, before, terms)
    except CannotRead as error:
        return Audit([], [f"unread: the audit ended early: {error}"])
    run = Run(
        before=before,
        after=after,
        history=history,
        record=record,
        mirror=record.mirror,
        book=book,
        terms=terms,
        calls=calls_of(app),
        complete=complete,
        end=last_told(history),
    )
    return Audit(checked(run), [str(violation) for violation in audit(run)])


async def _settled(client: Client, before: State, terms: Terms) -> tuple[History, State]:
    """Logs and state between which nothing was told. If checkouts stay without their end, or copies differ for good, it
    gives them as they are: the criteria say of which ones. Raises `CannotRead`.
    """
    history, after, told = await history_of(client), await _state(client, before), True
    _check_whole(history, before, after)
    for _ in range(ATTEMPTS_MAX):
        again, then = await history_of(client), await _state(client, before)
        told = any(history.count(event) != again.count(event) for event in events.EVENTS)
        history, after = again, then
        if not told and not awaits(Run(before=before, after=after, history=history, terms=terms)):
            break
        await asyncio.sleep(PAUSE_S)
    if told:
        raise CannotRead(
            f"events were told between any two of {ATTEMPTS_MAX} readings: audit again when nothing is under way, or "
            "audit a snapshot"
        )
    return history, after


def awaits(run: Run) -> bool:
    """Whether something is under way that will be told, or copies still follow their products."""
    if run.history.count(events.reserve_stock) != run.history.count(events.transaction_mark):
        return True
    return next(differing_copies(run), None) is not None


def _check_whole(history: History, before: State, after: State) -> None:
    """The logs must reach back to what was loaded. Raises `CannotRead`."""
    loaded = {(customer, row.checkout_id) for customer, row in before.all_rows(checkouts)}
    made = [row.at for customer, row in after.all_rows(checkouts) if (customer, row.checkout_id) not in loaded]
    first = next(iter(history.of(events.reserve_stock)), None)
    if len(made) > history.count(events.reserve_stock) and (first is None or first.time > min(made)):
        raise CannotRead(
            f"the logs have {history.count(events.reserve_stock)} of {len(made)} checkouts, and lack the first ones: "
            "they were released, or what is there was loaded with other options. Load anew, and audit within a week"
        )


async def _state(client: Client, before: State) -> State:
    if isinstance(client, EmbeddedClient):
        return state_here(client)
    return await state_by_requests(client, before.values(customer), before.values(seller), before.values(product))


def last_told(history: History) -> datetime | None:
    """The latest time that an event tells of: the deployment's time is not before it."""
    return max((told.time for event in events.EVENTS for told in history.of(event)), default=None)
