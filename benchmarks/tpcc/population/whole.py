"""The whole data set: every table's rows with their entities' keys, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from benchmarks.driver.workload import Loading
from benchmarks.tpcc import tables
from benchmarks.tpcc.population import goods, orders, people, places
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.tables import (
    DISTRICTS,
    CustomerRow,
    HistoryRow,
    ItemRow,
    NewOrderRow,
    OrderLineRow,
    OrderRow,
    StockRow,
    with_key,
)

Pairs = Iterator[tuple[Any, Any]]


def initial(settings: Settings) -> Iterator[Loading]:
    """The whole data set, made while it is read."""
    n_warehouses = settings.warehouses
    n_districts = n_warehouses * DISTRICTS
    n_items, n_customers = n_warehouses * settings.items, n_districts * settings.customers
    yield Loading(tables.warehouse, n_items, _items(settings), tables.item)
    yield Loading(tables.warehouse, n_warehouses, _warehouses(settings))
    yield Loading(tables.warehouse, n_items, _stocks(settings), tables.stock)
    yield Loading(tables.district, n_districts, _district_rows(settings))
    yield Loading(tables.district, n_customers, _in_districts(settings, people.customers, CustomerRow), tables.customer)
    yield Loading(tables.district, n_customers, _histories(settings), tables.history)
    yield Loading(
        tables.district, n_districts * settings.orders, _in_districts(settings, orders.orders, OrderRow), tables.order
    )
    yield Loading(tables.district, _n_order_lines(settings), _order_lines(settings), tables.order_line)
    yield Loading(tables.district, n_districts * settings.undelivered, _new_orders(settings), tables.new_order)


def _w_ids(settings: Settings) -> range:
    return range(1, settings.warehouses + 1)


def _districts(settings: Settings) -> Iterator[tuple[int, int]]:
    """The key of every district."""
    return product(_w_ids(settings), range(1, DISTRICTS + 1))


def _in_districts(
    settings: Settings, rows: Callable[[Settings, int, int], Iterable[tables.Row]], kind: type[tables.Row]
) -> Pairs:
    """Rows that are numbered in their district."""
    for district in _districts(settings):
        for number, row in enumerate(rows(settings, *district), start=1):
            yield district, with_key(kind, row, number)


def _items(settings: Settings) -> Pairs:
    """Item by item, so that each is made once for all warehouses."""
    for i_id, item in enumerate(goods.catalogue(settings), start=1):
        row = with_key(ItemRow, item, i_id)
        for w_id in _w_ids(settings):
            yield w_id, row


def _warehouses(settings: Settings) -> Pairs:
    return ((w_id, places.warehouse_row(settings, w_id)) for w_id in _w_ids(settings))


def _stocks(settings: Settings) -> Pairs:
    for w_id in _w_ids(settings):
        for i_id, stock in enumerate(goods.stocks(settings, w_id), start=1):
            yield w_id, with_key(StockRow, stock, i_id)


def _district_rows(settings: Settings) -> Pairs:
    for w_id in _w_ids(settings):
        for d_id, row in enumerate(places.districts(settings, w_id), start=1):
            yield (w_id, d_id), row


def _histories(settings: Settings) -> Pairs:
    for district in _districts(settings):
        for c_id, row in enumerate(people.histories(settings, *district), start=1):
            yield district, with_key(HistoryRow, row, c_id, 1)


def _order_lines(settings: Settings) -> Pairs:
    for district in _districts(settings):
        for o_id, lines in enumerate(orders.order_lines(settings, *district), start=1):
            for number, line in enumerate(lines, start=1):
                yield district, with_key(OrderLineRow, line, o_id, number)


def _n_order_lines(settings: Settings) -> int:
    return sum(sum(orders.line_counts(settings, *district)) for district in _districts(settings))


def _new_orders(settings: Settings) -> Pairs:
    for district in _districts(settings):
        for o_id in orders.undelivered_orders(settings):
            yield district, NewOrderRow(o_id)
