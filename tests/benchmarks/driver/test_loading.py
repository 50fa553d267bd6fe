"""A part of a data set is loaded: states, or rows in as many requests as they need."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import styx
from benchmarks.driver.loading import REQUESTS_AT_ONCE, ROWS_AT_ONCE, load
from benchmarks.driver.workload import Loading
from styx import App, Context, Operator


class Thing(msgspec.Struct, array_like=True):
    number: int


shelf = Operator("shelf", key_type=int, state_type=str)
things = shelf.table("things", Thing, key="number")


@shelf.register
async def load_rows(ctx: Context, table: str, rows: list[Any]) -> None:
    assert table == "things"
    assert len(rows) <= ROWS_AT_ONCE
    for row in rows:
        if row[0] < 0:
            raise ValueError("no number is negative")
        await ctx.rows(things).put(Thing(*row))


@shelf.register
async def count(ctx: Context) -> int:
    return int(await ctx.rows(things).count())


app = App("shelves", [shelf])


def test_states_are_loaded_and_replaced() -> None:
    async def main() -> None:
        async with styx.embedded(app) as client:
            for state in ("a", "b"):
                await load(client, Loading(shelf, 1, [(7, state)]))
                assert client.entity(shelf, 7) == state

    asyncio.run(main())


def test_rows_of_few_and_of_many_entities_are_all_loaded() -> None:
    async def main() -> None:
        many = ROWS_AT_ONCE * 3 + 1
        async with styx.embedded(app) as client:
            await load(client, Loading(shelf, many, [(1, Thing(number)) for number in range(many)], things))
            await load(client, Loading(shelf, 100, [(2 + number, Thing(number)) for number in range(100)], things))
            assert await client.call(shelf, 1, count) == many
            assert [await client.call(shelf, 2 + number, count) for number in range(100)] == [1] * 100
        assert REQUESTS_AT_ONCE < 100

    asyncio.run(main())


@pytest.mark.parametrize("at", [0, ROWS_AT_ONCE * (REQUESTS_AT_ONCE + 3)])
def test_a_row_that_is_refused_ends_the_load(at: int) -> None:
    async def main() -> None:
        numbers = [*range(at), -1, *range(at, at + ROWS_AT_ONCE * (REQUESTS_AT_ONCE + 1))]
        async with styx.embedded(app) as client:
            with pytest.raises(styx.TransactionAborted, match="no number is negative"):
                await load(client, Loading(shelf, len(numbers), [(1, Thing(number)) for number in numbers], things))

    asyncio.run(main())


def test_a_loading_is_named_after_its_table_or_operator() -> None:
    assert [Loading(shelf, 0, []).name, Loading(shelf, 0, [], things).name] == ["shelf", "things"]
