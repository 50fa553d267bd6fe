"""What rows cost: rows, calls and lists do the same work, so that their figures can be compared."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchmarks.micro.carts import CARTS, ITEMS, OPERATIONS, by_quantity
from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.micro.rows import ROWS, run_row
from styx.messages import decode_reply
from styx.values.codec import decode_plain

COUNT = 3


def results(name: str) -> tuple[EngineLoop, list[Any]]:
    row = ROWS[name]
    engine = row.engine()
    replies = [decode_reply(data) for data in run_row(engine, row.routed(COUNT), COUNT)]
    assert [reply.error for reply in replies] == [None] * COUNT
    return engine, [msgspec.msgpack.decode(reply.result) for reply in replies]


def quantities(engine: EngineLoop, table: str) -> int:
    """The sum over all items."""
    held = 0
    for slot in engine.worker.slots.values():
        for data in slot.state.table(table).at(engine.worker.epoch).values():
            value = decode_plain(data)
            held += sum(each[1] for each in value) if table == "cart" else value[1]
    return held


@pytest.mark.parametrize("name", ["row_get", "call_get", "list_get"])
def test_each_form_reads_ten_items(name: str) -> None:
    assert results(name)[1] == [OPERATIONS] * COUNT


@pytest.mark.parametrize(("name", "table"), [("row_put", "cart/items"), ("call_put", "item"), ("list_put", "cart")])
def test_each_form_puts_ten_items(name: str, table: str) -> None:
    assert quantities(results(name)[0], table) == CARTS * ITEMS + OPERATIONS * COUNT


def test_rows_and_calls_change_the_same_items() -> None:
    by_row, by_call = quantities(results("row_update")[0], "cart/items"), quantities(results("call_update")[0], "item")
    assert by_row == by_call != CARTS * ITEMS


@pytest.mark.parametrize("name", ["row_insert_view", "row_update_view"])
def test_a_view_has_what_its_rows_add_up_to(name: str) -> None:
    engine, _ = results(name)
    held: dict[tuple[int, int], list[int]] = {}
    groups: dict[tuple[int, int], list[int]] = {}
    for slot in engine.worker.slots.values():
        for (cart, _), data in slot.state.table("cart/counted").at(engine.worker.epoch).items():
            _, quantity, price = decode_plain(data)
            group = held.setdefault((cart, quantity), [0, 0])
            group[0] += 1
            group[1] += price
        for key, data in slot.state.table(by_quantity.full_name).at(engine.worker.epoch).items():
            groups[key] = list(msgspec.structs.astuple(by_quantity.row_type.decode(data))[1:])
    assert groups == held
    assert len(groups) >= CARTS
    assert max(count for count, _ in groups.values()) == ITEMS


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("row_scan_50", 50),
        ("call_scan_50", 50),
        ("row_scan_1000", ITEMS),
        ("call_scan_1000", ITEMS),
        ("list_scan_1000", ITEMS),
        ("row_partitions", CARTS),
    ],
)
def test_each_query_finds_all_that_there_is(name: str, found: int) -> None:
    assert results(name)[1] == [found] * COUNT


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("row_insert", "cart/items"),
        ("call_insert", "item"),
        ("row_unique", "cart/coupons"),
        ("call_unique", "coupon"),
        ("call_unique", "coupon_text"),
        ("row_app_wide", "cart/listings"),
        ("call_app_wide", "listing"),
        ("call_app_wide", "code"),
    ],
)
def test_what_is_inserted_is_there(name: str, table: str) -> None:
    engine, _ = results(name)
    before = CARTS * ITEMS if name.endswith("insert") else 0
    held = sum(len(slot.state.table(table)) for slot in engine.worker.slots.values())
    assert held == before + OPERATIONS * COUNT
