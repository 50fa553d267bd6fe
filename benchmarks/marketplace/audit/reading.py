"""Reads what an audit judges: the state and the logs of the embedded engine, of a running deployment by ordinary
requests, or of a stored snapshot. It changes nothing but by read-only requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.driver.reading import Unread, ask_all, read_all
from benchmarks.marketplace import events
from benchmarks.marketplace.audit.history import History, told_of
from benchmarks.marketplace.audit.state import State, state_of
from benchmarks.marketplace.services.cart.replica import Replica
from benchmarks.marketplace.services.cart.rows import checkouts, failures, items
from benchmarks.marketplace.services.customer.rows import counts
from benchmarks.marketplace.services.order.rows import order_history, order_items, orders
from benchmarks.marketplace.services.payment.rows import cards, payments
from benchmarks.marketplace.services.product.rows import Product
from benchmarks.marketplace.services.seller.rows import entry_details, low_stock, order_entries
from benchmarks.marketplace.services.shipment.rows import (
    QUEUE,
    Waiting,
    firsts,
    packages,
    queue,
    shipments,
    waiting,
)
from benchmarks.marketplace.services.stock.rows import demand, stock_items
from styx.client.base import Client
from styx.client.embedded import EmbeddedClient
from styx.model.app import App
from styx.relational.table import Table
from styx.snapshot.load import read_states
from styx.snapshot.manifest import newest_first, read_manifests
from styx.state.table import NEWEST
from styx.store.base import Store
from styx.values.custom_types import dec_hook

OF_CUSTOMERS: Final = (
    *(items, checkouts, failures, counts, orders, order_items, order_history),
    *(payments, cards, shipments, packages),
)
OF_SELLERS: Final = (entry_details, order_entries, low_stock)
OF_PRODUCTS: Final = (stock_items, demand)
_VALUES: Final[dict[str, Any]] = {"product": Product, "replica": Replica}


class CannotRead(Exception):
    """Something of the state or the logs could not be read; the message says what to do."""


async def history_of(client: Client) -> History:
    """All events that the logs still have. Raises what reading raises."""
    history = History()
    for event in events.EVENTS:
        async for seen in client.events(event, follow=False):
            history.add(event, told_of(seen))
    return history


def state_here(client: EmbeddedClient) -> State:
    """The committed state of the embedded engine, with its views."""
    return state_of(client.engine.app, client.engine.encoded_state().items())


class Stored(NamedTuple):
    """What a stored snapshot has, with its views, and the epoch at whose end it was so. An entry is an entity's state
    or one of its rows, by (operator or table, key), as the engine keeps it.
    """

    epoch: int
    entries: list[tuple[tuple[str, Any], bytes]]


def state_in_snapshot(store: Store, app: App, *, epoch: int | None = None) -> tuple[int, State]:
    """The state in a stored snapshot, with its views, and its epoch: the newest one, or that of `epoch`. Raises
    `CannotRead`.
    """
    stored = read_snapshot(store, epoch=epoch)
    return stored.epoch, state_of(app, stored.entries)


def read_snapshot(store: Store, *, epoch: int | None = None) -> Stored:
    """The newest snapshot, or that of `epoch`. Raises `CannotRead`, and what the store raises."""
    manifests, _ = read_manifests(store)
    found = [each for each in newest_first(manifests) if epoch is None or each.epoch == epoch]
    if not found:
        which = "no snapshot" if epoch is None else f"no snapshot of epoch {epoch}"
        raise CannotRead(f"the store has {which}: wait for one, or name one of {[each.epoch for each in manifests]}")
    states = read_states(found[0], range(len(found[0].slots)), store)
    return Stored(found[0].epoch, [entry for state in states.values() for entry in state.entities(NEWEST).items()])


async def state_by_requests(
    client: Client, customers: Iterable[int], sellers: Iterable[int], products: Iterable[tuple[int, int]]
) -> State:
    """The state of these entities in a running deployment, entity by entity: nothing may be under way. Raises
    `CannotRead`, also for an entity with more rows than one query gives.
    """
    found, those = State(), list(products)
    for operator, kind in _VALUES.items():
        for key, value in (await ask_all(partial(client.read, operator), those)).items():
            if isinstance(value, Unread):
                if not value.why.startswith("UnknownEntity"):
                    raise CannotRead(f"{operator} {key}: {value}")
            elif value is not None:
                found.put_value(operator, key, msgspec.convert(value, kind, dec_hook=dec_hook))
    selling = list(sellers)
    for tables, keys in ((OF_CUSTOMERS, list(customers)), (OF_SELLERS, selling), (OF_PRODUCTS, those)):
        for table in tables:
            await _read_rows(client, found, table, keys)
    if selling:
        await _read_queue(client, found, selling)
    return found


async def _read_queue(client: Client, found: State, sellers: list[int]) -> None:
    """The queue's rows, of one seller after the other: all together are too many for one query."""
    await _read_rows(client, found, firsts, [QUEUE])
    reads = [(QUEUE, (seller_id,)) for seller_id in sellers]
    read, rows = await read_all(client, queue.name, reads, "waiting_of"), list[Waiting]()
    for (_, (seller_id,)), those in read.items():
        if isinstance(those, Unread):
            raise CannotRead(f"the queue of seller {seller_id}: {those}. If it is too long, audit a snapshot")
        rows += msgspec.convert(those, list[Waiting], dec_hook=dec_hook)
    if rows:
        found.put_rows(waiting, QUEUE, rows)


async def _read_rows(client: Client, found: State, table: Table, keys: list[Any]) -> None:
    row = list[table.row_type.declared]  # type: ignore[name-defined]
    for key, rows in (await ask_all(partial(client.read_rows, table), keys)).items():
        if isinstance(rows, Unread):
            raise CannotRead(
                f"rows of {table.full_name} of {key}: {rows}. If they are too many for one query, audit a snapshot"
            )
        found.put_rows(table, key, msgspec.convert(rows, row, dec_hook=dec_hook, str_keys=True))


def calls_of(app: App) -> list[tuple[str, str]]:
    """What the app's graphs allow to call."""
    return [(str(caller), str(callee)) for graph in app.graphs.values() for caller, callee in graph.edges]
