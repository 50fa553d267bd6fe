"""The initial rows are those of clause 4.3.3.1: as many, with these values, and consistent at every scale."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product
from typing import Any

import pytest

from benchmarks.tpcc.population import goods, orders, people
from benchmarks.tpcc.population.whole import initial
from benchmarks.tpcc.settings import CUSTOMERS, ITEMS, Settings
from benchmarks.tpcc.tables import OrderLineRow, with_key
from benchmarks.tpcc.text import last_name
from tests.benchmarks.tpcc.serial_run import keyed

SMALL = Settings(warehouses=2, items=300, customers=50)
FULL = Settings(warehouses=1, items=ITEMS, customers=CUSTOMERS)
DISTRICTS = list(product((1, 2), range(1, 11)))


@cache
def rows(settings: Settings = SMALL) -> dict[str, dict[Any, Any]]:
    """All tables by their names."""
    return {loading.name: dict(keyed(loading)) for loading in initial(settings)}


@pytest.mark.parametrize("settings", [SMALL, Settings(items=1, customers=30), Settings(items=7, customers=31)])
def test_there_are_as_many_rows_as_are_announced_and_no_key_twice(settings: Settings) -> None:
    for loading in initial(settings):
        keys = [key for key, _ in keyed(loading)]
        assert len(keys) == len(set(keys)) == loading.size


def test_every_row_is_one_of_its_table() -> None:
    for loading in initial(SMALL):
        for key, row in loading.pairs:
            assert loading.operator.key_space.check(key) == key
            kept: Any = loading.operator if loading.table is None else loading.table.row_type
            encode, decode = (
                (kept.encode_state, kept.decode_state) if loading.table is None else (kept.encode, kept.decode)
            )
            assert decode(encode(row)) == row


def test_a_full_warehouse_has_the_cardinalities_of_the_standard() -> None:
    sizes = {loading.name: loading.size for loading in initial(FULL)}
    lines = sizes.pop("order_line")
    assert sizes == {
        "warehouse": 1,
        "district": 10,
        "customer": 30_000,
        "history": 30_000,
        "order": 30_000,
        "new_order": 9_000,
        "item": 100_000,
        "stock": 100_000,
    }
    assert abs(lines - 300_000) < 2_000


def test_the_same_seed_makes_the_same_rows_and_another_one_others() -> None:
    again, other = (
        {loading.name: dict(keyed(loading)) for loading in initial(settings)}
        for settings in (SMALL, Settings(warehouses=2, items=300, customers=50, data_seed=2))
    )
    assert again == rows()
    for table in ("warehouse", "district", "customer", "history", "order", "order_line", "item", "stock"):
        assert again[table] != other[table]


def test_a_warehouse_has_the_same_rows_whatever_else_there_is() -> None:
    alone = rows(Settings(warehouses=1, items=300, customers=50))
    for table, found in rows().items():
        assert {key: row for key, row in found.items() if key in alone[table]} == alone[table]


def test_warehouses_share_the_catalogue_and_nothing_else() -> None:
    tables = rows()
    assert all(row == tables["item"][1, i_id] for (_, i_id), row in tables["item"].items())
    assert all(tables["stock"][1, i_id] != tables["stock"][2, i_id] for i_id in range(1, 301))
    assert tables["customer"][1, 1, 1].data != tables["customer"][2, 1, 1].data != tables["customer"][1, 2, 1].data


def test_items_are_as_the_standard_has_them() -> None:
    items = list(goods.catalogue(Settings(items=50_000)))
    assert sum("ORIGINAL" in item.data for item in items) == 5_000
    assert {len(item.name) for item in items} == set(range(14, 25))
    assert {len(item.data) for item in items} == set(range(26, 51))
    assert (min(item.price for item in items), max(item.price for item in items)) == (1_00, 100_00)
    assert (min(item.im_id for item in items), max(item.im_id for item in items)) == (1, 10_000)


def test_stock_is_as_the_standard_has_it() -> None:
    stocks = list(goods.stocks(Settings(items=5_000), 1))
    assert {stock.quantity for stock in stocks} == set(range(10, 101))
    assert {len(dist) for stock in stocks for dist in stock.dists} == {24}
    assert {len(stock.dists) for stock in stocks} == {10}
    assert len({dist for stock in stocks for dist in stock.dists}) == 50_000
    assert sum("ORIGINAL" in stock.data for stock in stocks) == 500
    assert {(stock.ytd, stock.order_cnt, stock.remote_cnt) for stock in stocks} == {(0, 0, 0)}


def test_warehouses_and_districts_are_as_the_standard_has_them() -> None:
    tables = rows()
    for place in [*tables["warehouse"].values(), *tables["district"].values()]:
        assert 6 <= len(place.name) <= 10
        assert 0 <= place.tax <= 20_00
        address = place.address
        assert all(10 <= len(text) <= 20 for text in (address.street_1, address.street_2, address.city))
        assert len(address.state) == 2
        assert address.zip[:4].isdecimal()
        assert address.zip[4:] == "11111"
    assert {row.next_o_id for row in tables["district"].values()} == {51}
    assert len({row.tax for row in tables["district"].values()}) > 10


def test_what_was_paid_is_in_the_history_and_in_all_sums() -> None:
    tables = rows()
    for w_id, d_id in DISTRICTS:
        paid = sum(row.amount for row in tables["history"].values() if (row.w_id, row.d_id) == (w_id, d_id))
        assert tables["district"][w_id, d_id].ytd == paid == 50 * 10_00
        assert tables["warehouse"][w_id].ytd == 10 * paid
    assert {(w, d, c, 1) for w, d, c in tables["customer"]} == set(tables["history"])
    assert all(12 <= len(row.data) <= 24 for row in tables["history"].values())


def test_customers_are_as_the_standard_has_them() -> None:
    customers = list(people.customers(FULL, 1, 1))
    assert len(customers) == 3_000
    assert [row.last_name for row in customers[:1_000]] == [last_name(number) for number in range(1_000)]
    later = Counter(row.last_name for row in customers[1_000:])
    assert set(later) <= {last_name(number) for number in range(1_000)}
    # NURand: a uniform draw would have the most frequent name about 8 times in 2,000.
    assert later.most_common(1)[0][1] > 15
    assert Counter(row.credit for row in customers) == {"GC": 2_700, "BC": 300}
    assert {len(row.first_name) for row in customers} == set(range(8, 17))
    assert {len(row.phone) for row in customers} == {16}
    assert all(300 <= len(row.data) <= 500 and 0 <= row.discount <= 50_00 for row in customers)
    fixed = {(row.middle, row.credit_lim, row.balance, row.ytd_payment, row.payment_cnt) for row in customers}
    assert fixed == {("OE", 50_000_00, -10_00, 10_00, 1)}
    assert {row.delivery_cnt for row in customers} == {0}


def test_the_names_have_every_customer_once_in_the_order_of_first_names() -> None:
    customers = rows()["customer"]
    for w_id, d_id in DISTRICTS:
        by_name = people.customers_by_name(SMALL, w_id, d_id)
        assert sorted(c_id for c_ids in by_name.values() for c_id in c_ids) == list(range(1, 51))
        for last, c_ids in by_name.items():
            found = [customers[w_id, d_id, c_id] for c_id in c_ids]
            assert {row.last_name for row in found} == {last}
            assert [row.first_name for row in found] == sorted(row.first_name for row in found)


def test_every_customer_has_one_order() -> None:
    tables = rows()
    for w_id, d_id in DISTRICTS:
        placed = [tables["order"][w_id, d_id, o_id].c_id for o_id in range(1, 51)]
        assert sorted(placed) == list(range(1, 51)) != placed


def test_the_last_orders_are_not_delivered() -> None:
    tables = rows()
    assert set(tables["new_order"]) == {(*district, o_id) for district in DISTRICTS for o_id in range(36, 51)}
    for (w_id, d_id, o_id), order in tables["order"].items():
        assert (order.carrier_id is None) == ((w_id, d_id, o_id) in tables["new_order"])
        assert order.all_local == 1
    assert {order.carrier_id for order in tables["order"].values()} == {None, *range(1, 11)}


def test_the_lines_of_orders_are_as_the_standard_has_them() -> None:
    tables = rows()
    of_order: Counter[tuple[int, int, int]] = Counter()
    for (w_id, d_id, o_id, number), line in tables["order_line"].items():
        of_order[w_id, d_id, o_id] += 1
        assert number <= tables["order"][w_id, d_id, o_id].ol_cnt
        assert (line.supply_w_id, line.quantity, len(line.dist_info)) == (w_id, 5, 24)
        assert 1 <= line.i_id <= 300
        delivered = (w_id, d_id, o_id) not in tables["new_order"]
        assert (line.delivery_d is not None) == delivered
        assert (line.amount == 0) == delivered
        assert line.amount <= 9_999_99
    assert of_order == {key: order.ol_cnt for key, order in tables["order"].items()}
    assert set(of_order.values()) == set(range(5, 16))


def test_a_districts_parts_agree_when_they_are_made_again_by_themselves() -> None:
    lines = list(orders.order_lines(SMALL, 2, 3))
    assert [len(of_one) for of_one in lines] == orders.line_counts(SMALL, 2, 3)
    assert with_key(OrderLineRow, lines[4][0], 5, 1) == rows()["order_line"][2, 3, 5, 1]
    assert [row.c_id for row in orders.orders(SMALL, 2, 3)] == orders.ordering_customers(SMALL, 2, 3)
