"""The app of `benchmarks.replica_lag`: shelves of rows, of which one transaction writes many."""

from __future__ import annotations

import msgspec

from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator

shelf = Operator("shelf", key_type=int)


class Item(msgspec.Struct, array_like=True):
    """A row."""

    place: int
    quantity: int
    name: str


items = shelf.table("items", Item, key="place")


@shelf.register
async def fill(ctx: Context, first: int, count: int, quantity: int) -> None:
    """Writes `count` rows from the place `first` on."""
    rows = ctx.rows(items)
    for place in range(first, first + count):
        await rows.put(Item(place, quantity, "a thing on a shelf"))


app = App("shelves", [shelf])
