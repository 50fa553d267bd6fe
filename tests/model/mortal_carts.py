"""Carts that live for a time, and a world of them whose clock is set forward, in the serial reference."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from styx import App, Context, Index, Operator, Ref, Table
from styx.messages import Request
from styx.model.agenda import agenda_of, due_of
from styx.model.delivery import delivery_request, put_off_request
from styx.testing.serial import Place, SerialReference

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DELIVERED = Place(1, 1, delivers=True)
EMPTY: Any = [None, [], 0, 0]
"""What `look` gives of a cart in which nothing is left."""


class Item(msgspec.Struct):
    """A row."""

    id: int
    colour: str = ""
    weight: int = 0


class Part(msgspec.Struct):
    """A row that refers to another one."""

    id: int
    item: int | None = None


def an_app(
    ttl: timedelta | None = HOUR, rows_ttl: Any = HOUR, on_delete: str = "restrict", was: str = "", name: str = "items"
) -> App:
    """One operator whose values and rows live for a time."""
    cart = Operator("cart", key_type=str, ttl=ttl)
    items = cart.table(
        name,
        Item,
        key="id",
        indexes=[Index("by_colour", equal="colour"), Index("all", equal="colour", scope="partition")],
        ttl=rows_ttl,
        was=was,
    )
    colours = items.view("colours", group_by="colour")
    if on_delete:
        _refers(cart, items, on_delete)
    _writes(cart, items)

    @cart.register(read_only=True)
    async def look(ctx: Context) -> Any:
        rows = ctx.rows(items)
        red: Any = await ctx.rows(colours).get("red")
        return [
            await ctx.get(),
            [row.id for row in await rows.select(scan=True)],
            await rows.count(colour="red"),
            red.count,
        ]

    return App("shop", [cart])


def _refers(cart: Operator, items: Table, on_delete: Any) -> None:
    parts = cart.table("parts", Part, key="id", references=[Ref("item", items, on_delete=on_delete)])

    @cart.register
    async def refer(ctx: Context, part: int, item: int | None) -> None:
        await ctx.rows(parts).put(Part(part, item))

    @cart.register
    async def part(ctx: Context, part: int) -> Any:
        row = await ctx.rows(parts).get(part)
        return None if row is None else [row.id, row.item]


def _writes(cart: Operator, items: Table) -> None:
    @cart.register
    async def put(ctx: Context, value: Any) -> None:
        await ctx.put(value)

    @cart.register
    async def delete(ctx: Context) -> None:
        await ctx.delete()

    @cart.register
    async def insert(ctx: Context, number: int, seconds: float | None = None, how: Any = None) -> None:
        ttl = None if seconds is None else timedelta(seconds=seconds)
        await ctx.rows(items).insert(Item(number, "red"), how, ttl=ttl)

    @cart.register
    async def put_row(ctx: Context, number: int, seconds: float | None = None) -> None:
        await ctx.rows(items).put(Item(number, "red"), ttl=None if seconds is None else timedelta(seconds=seconds))

    @cart.register
    async def update(ctx: Context, number: int) -> None:
        await ctx.rows(items).update(number, colour="blue")

    @cart.register
    async def update_all(ctx: Context) -> None:
        await ctx.rows(items).update_where({"colour": "blue"}, scan=True)

    @cart.register
    async def add(ctx: Context, number: int) -> None:
        await ctx.rows(items).add(number, weight=1)

    @cart.register
    async def remove(ctx: Context, number: int) -> None:
        await ctx.rows(items).delete(number)


class World:
    """The reference with a clock, and an agenda that is delivered when its time comes."""

    def __init__(self, app: App, n_slots: int = 4) -> None:
        self.reference = SerialReference(app, n_slots=n_slots)
        self.now_us = 10**15
        self.tid = 0
        self.told: list[Any] = []

    def run(self, key: Any, function: str, *arguments: Any) -> Any:
        self.tid += 1
        request = Request(f"r{self.tid}", "cart", key, function, msgspec.msgpack.encode(arguments))
        outcome = self.reference.run(self.tid, self.now_us, request)
        if outcome.result is None:
            assert outcome.error is not None
            return str(outcome.error)
        return msgspec.msgpack.decode(outcome.result)

    def entries(self) -> list[tuple[int, str, Any, Any]]:
        """(due time, id, table, key) of all entries, the next one first."""
        agenda = [(each, data) for each, data in self.reference.state.items() if each[0] == agenda_of("cart")]
        return sorted((*due_of(data), *each) for each, data in agenda)

    def advance(self, by: timedelta) -> None:
        """Lets time pass, and delivers what is due."""
        until = self.now_us + by // timedelta(microseconds=1)
        while (entries := self.entries()) and entries[0][0] <= until:
            due_us, its_id, table, key = entries[0]
            self.now_us = max(self.now_us, due_us)
            self.deliver(delivery_request(table, key, its_id, self.now_us))
        self.now_us = until

    def deliver(self, request: Request) -> None:
        self.tid += 1
        outcome = self.reference.run(self.tid, self.now_us, request, DELIVERED)
        if outcome.result is None:
            assert outcome.error is not None
            put_off = put_off_request(request, self.now_us, ("Error", str(outcome.error)))
            outcome = self.reference.run(self.tid, self.now_us, put_off, DELIVERED)
            assert outcome.result is not None
        self.told.append(msgspec.msgpack.decode(outcome.result))

    def look(self, key: str = "a") -> Any:
        return self.run(key, "look")
