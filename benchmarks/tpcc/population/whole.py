"""The whole data set: every table's rows under their keys, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from benchmarks.driver.workload import Loading
from benchmarks.tpcc import tables
from benchmarks.tpcc.population import goods, orders, people, places
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.tables import DISTRICTS, NewOrder

Pairs = Iterator[tuple[Any, Any]]


def initial(settings: Settings) -> Iterator[Loading]:
    """The whole data set, made while it is read."""
    n_warehouses = settings.warehouses
    n_districts = n_warehouses * DISTRICTS
    n_items, n_customers = n_warehouses * settings.items, n_districts * settings.customers
    yield Loading(tables.item, n_items, _items(settings))
    yield Loading(tables.warehouse, n_warehouses, _warehouses(settings))
    yield Loading(tables.stock, n_items, _in_warehouses(settings, goods.stocks))
    yield Loading(tables.district, n_districts, _in_warehouses(settings, places.districts))
    yield Loading(tables.customer, n_customers, _in_districts(settings, people.customers))
    yield Loading(tables.customer_name, n_districts * settings.last_names, _customer_names(settings))
    yield Loading(tables.history, n_customers, _histories(settings))
    yield Loading(tables.order, n_districts * settings.orders, _in_districts(settings, orders.orders))
    yield Loading(tables.customer_order, n_customers, _customer_orders(settings))
    yield Loading(tables.order_line, _n_order_lines(settings), _order_lines(settings))
    yield Loading(tables.new_order, n_districts * settings.undelivered, _new_orders(settings))
    yield Loading(tables.undelivered, n_districts, _undelivered(settings))


def _w_ids(settings: Settings) -> range:
    return range(1, settings.warehouses + 1)


def _districts(settings: Settings) -> Iterator[tuple[int, int]]:
    """The key of every district."""
    return product(_w_ids(settings), range(1, DISTRICTS + 1))


def _in_warehouses(settings: Settings, rows: Callable[[Settings, int], Iterable[Any]]) -> Pairs:
    """Rows that are numbered in their warehouse."""
    for w_id in _w_ids(settings):
        for number, row in enumerate(rows(settings, w_id), start=1):
            yield (w_id, number), row


def _in_districts(settings: Settings, rows: Callable[[Settings, int, int], Iterable[Any]]) -> Pairs:
    """Rows that are numbered in their district."""
    for w_id, d_id in _districts(settings):
        for number, row in enumerate(rows(settings, w_id, d_id), start=1):
            yield (w_id, d_id, number), row


def _items(settings: Settings) -> Pairs:
    """Item by item, so that each is made once for all warehouses."""
    for i_id, item in enumerate(goods.catalogue(settings), start=1):
        for w_id in _w_ids(settings):
            yield (w_id, i_id), item


def _warehouses(settings: Settings) -> Pairs:
    return ((w_id, places.warehouse_row(settings, w_id)) for w_id in _w_ids(settings))


def _customer_names(settings: Settings) -> Pairs:
    for w_id, d_id in _districts(settings):
        for last, c_ids in people.customers_by_name(settings, w_id, d_id).items():
            yield (w_id, d_id, last), c_ids


def _histories(settings: Settings) -> Pairs:
    return (((*customer, 1), row) for customer, row in _in_districts(settings, people.histories))


def _customer_orders(settings: Settings) -> Pairs:
    for w_id, d_id in _districts(settings):
        for o_id, c_id in enumerate(orders.ordering_customers(settings, w_id, d_id), start=1):
            yield (w_id, d_id, c_id), o_id


def _order_lines(settings: Settings) -> Pairs:
    for order, lines in _in_districts(settings, orders.order_lines):
        for number, line in enumerate(lines, start=1):
            yield (*order, number), line


def _n_order_lines(settings: Settings) -> int:
    return sum(sum(orders.line_counts(settings, *district)) for district in _districts(settings))


def _new_orders(settings: Settings) -> Pairs:
    for w_id, d_id in _districts(settings):
        for o_id in orders.undelivered_orders(settings):
            yield (w_id, d_id, o_id), NewOrder()


def _undelivered(settings: Settings) -> Pairs:
    return ((district, settings.delivered + 1) for district in _districts(settings))
