"""A part of a data set is loaded: states of entities, or rows of a table."""

from __future__ import annotations

import asyncio

import msgspec

import styx
from benchmarks.driver.loading import load
from benchmarks.driver.workload import Loading
from styx import App, Operator


class Thing(msgspec.Struct, array_like=True):
    number: int
    units: int


shelf = Operator("shelf", key_type=int, state_type=str)
things = shelf.table("things", Thing, key="number")
app = App("shelves", [shelf])


def test_states_and_rows_are_loaded_and_replaced() -> None:
    async def main() -> None:
        async with styx.embedded(app) as client:
            for state, units in (("a", 1), ("b", 2)):
                await load(client, Loading(shelf, 1, [(7, state)]))
                await load(client, Loading(shelf, 2, [(7, Thing(1, units)), (8, Thing(1, units))], things))
                assert client.state() == {
                    ("shelf", 7): state,
                    ("shelf/things", (7, 1)): Thing(1, units),
                    ("shelf/things", (8, 1)): Thing(1, units),
                }

    asyncio.run(main())


def test_a_loading_is_named_after_its_table_or_operator() -> None:
    assert [Loading(shelf, 0, []).name, Loading(shelf, 0, [], things).name] == ["shelf", "things"]
