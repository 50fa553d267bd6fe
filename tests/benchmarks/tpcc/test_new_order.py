"""New-Order: what an order answers and writes, and that nothing is left of one that names no item."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import styx
from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import NewOrderAnswer, OrderedLine, Wanted
from benchmarks.tpcc.new_order import total
from styx.client.embedded import EmbeddedClient
from tests.benchmarks.tpcc.hand_made import HOME, ITEMS, REMOTE, State, changes, state_of, wholesaler

DISTRICT = (HOME, 4)
Line = tuple[int, int, int]


async def order(client: EmbeddedClient, c_id: int, *lines: Line) -> NewOrderAnswer:
    answer = await client.call("district", DISTRICT, "new_order", c_id, [Wanted(*line) for line in lines])
    return msgspec.convert(answer, NewOrderAnswer)


def ordered(*lines: Line) -> tuple[NewOrderAnswer, State]:
    """The answer to an order of customer 5, and the rows that it changed."""

    async def run() -> tuple[NewOrderAnswer, State]:
        async with wholesaler() as client:
            before = state_of(client)
            answer = await order(client, 5, *lines)
            return answer, changes(before, state_of(client))

    return asyncio.run(run())


def test_an_order_writes_its_rows_and_answers_what_a_terminal_shows() -> None:
    answer, changed = ordered((2, HOME, 3), (ITEMS, HOME, 4))
    assert answer == NewOrderAnswer(
        1,
        answer.entry_d,
        "OUGHTOUGHT",
        "GC",
        2500,
        500,
        1000,
        2588,  # 3,000 cents less a quarter, and 15 % of that on top: 2,587.5
        [OrderedLine("item 2", 17, "G", 200, 600), OrderedLine("item 6", 16, "B", 600, 2400)],
    )
    assert answer.entry_d > 0
    assert changed.pop(("district", DISTRICT)).next_o_id == 2
    for i_id, left, taken in ((2, 17, 3), (ITEMS, 16, 4)):
        stock = changed.pop(("stock", (HOME, i_id)))
        assert (stock.quantity, stock.ytd, stock.order_cnt, stock.remote_cnt) == (left, taken, 1, 0)
    assert changed == {
        ("order", (*DISTRICT, 1)): tables.Order(5, answer.entry_d, None, 2, 1),
        ("new_order", (*DISTRICT, 1)): tables.NewOrder(),
        ("order_line", (*DISTRICT, 1, 1)): tables.OrderLine(2, HOME, None, 3, 600, "w1 i2 d4"),
        ("order_line", (*DISTRICT, 1, 2)): tables.OrderLine(ITEMS, HOME, None, 4, 2400, "w1 i6 d4"),
    }


def test_another_warehouse_supplies_what_it_is_asked_for() -> None:
    answer, changed = ordered((1, REMOTE, 5), (1, HOME, 6))
    assert [line.stock for line in answer.lines] == [15, 14]
    remote, home = changed["stock", (REMOTE, 1)], changed["stock", (HOME, 1)]
    assert (remote.quantity, remote.ytd, remote.order_cnt, remote.remote_cnt) == (15, 5, 1, 1)
    assert (home.quantity, home.ytd, home.order_cnt, home.remote_cnt) == (14, 6, 1, 0)
    assert changed["order", (*DISTRICT, 1)].all_local == 0
    line = changed["order_line", (*DISTRICT, 1, 1)]
    assert (line.supply_w_id, line.dist_info) == (REMOTE, "w2 i1 d4")


def test_an_item_may_stand_in_several_lines() -> None:
    answer, changed = ordered((3, HOME, 1), (3, HOME, 2), (3, HOME, 3))
    assert [line.stock for line in answer.lines] == [19, 17, 14]
    assert (changed["stock", (HOME, 3)].ytd, changed["stock", (HOME, 3)].order_cnt) == (6, 3)
    assert [changed["order_line", (*DISTRICT, 1, n)].quantity for n in (1, 2, 3)] == [1, 2, 3]


def test_stock_is_filled_up_when_fewer_than_ten_would_be_left() -> None:
    # Twenty less ten: enough. Ten less one: 91 more arrive.
    answer, changed = ordered((1, HOME, 10), (1, HOME, 1))
    assert [line.stock for line in answer.lines] == [10, 100]
    assert changed["stock", (HOME, 1)].quantity == 100


@pytest.mark.parametrize(
    ("amounts", "discount", "taxes", "cents"),
    [([], 0, 0, 0), ([100, 1], 0, 0, 101), ([1], 5000, 0, 1), ([1], 5001, 0, 0), ([10_000], 1000, 1500, 10_350)],
)
def test_a_total_is_rounded_half_up(amounts: list[int], discount: int, taxes: int, cents: int) -> None:
    assert total(amounts, discount, taxes) == cents


async def refused(c_id: int, *lines: Line) -> tuple[str, str]:
    """The error of an order that leaves no trace; the next one gets its number."""
    async with wholesaler() as client:
        before = state_of(client)
        with pytest.raises(styx.TransactionAborted) as aborted:
            await order(client, c_id, *lines)
        assert changes(before, state_of(client)) == {}
        assert (await order(client, 5, (1, HOME, 1))).o_id == 1
        return aborted.value.type, aborted.value.message


def test_an_item_that_does_not_exist_rolls_back_the_whole_order() -> None:
    error = asyncio.run(refused(5, (1, HOME, 1), (2, REMOTE, 1), (ITEMS + 1, HOME, 1)))
    assert error == ("ItemNotFound", "Item number is not valid")


def test_a_row_that_is_not_there_rolls_it_back_too_and_is_named() -> None:
    assert asyncio.run(refused(6, (1, HOME, 1))) == ("NoSuchRow", "there is no customer (1, 4, 6)")
    assert asyncio.run(refused(5, (1, 3, 1))) == ("NoSuchRow", "there is no stock (3, 1)")
