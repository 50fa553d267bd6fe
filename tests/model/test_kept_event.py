"""Kept events, one transaction after the other in the serial reference: what rows are there, and who may write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec
import pytest

from styx import App, Context, Event, KeptEvent, Operator, Table
from styx.errors import BadArguments, ConfigurationError, UnknownOperator
from styx.messages import Request
from styx.model.agenda import agenda_of, decode_entry
from styx.testing.serial import Place, SerialReference


class Paid(msgspec.Struct):
    amount: int
    by: str = "ada"


class Row(msgspec.Struct):
    number: int


T = TypeVar("T")


class Pair(msgspec.Struct, Generic[T], frozen=True):
    first: T
    second: T


@dataclass
class Noted(Generic[T]):
    value: T
    notes: list[str] = field(default_factory=list)
    count: int = 1


paid: Event[Paid] = Event("order-paid", Paid, rows=timedelta(days=90), version=3)
seen: Event[list[int]] = Event("seen", list[int], rows=True)
gone: Event[int] = Event("gone", int)
elsewhere: Event[int] = Event("elsewhere", int, rows=True)
wrong: Any = "x"
order = Operator("order", key_type=(str, int))
other = Operator("other")


@order.register
async def pay(ctx: Context, *amounts: int) -> list[int]:
    for amount in amounts:
        ctx.emit(paid, Paid(amount))
    return [row.value.amount for row in await ctx.rows(paid).select(scan=True)]


@order.register
async def pay_and_fail(ctx: Context) -> None:
    ctx.emit(paid, Paid(1))
    raise ValueError("no")


@order.register
async def tell(ctx: Context, key: Any) -> None:
    ctx.emit(seen, [1], key=key)
    ctx.emit(gone, 2)


@order.register
async def pass_on(ctx: Context) -> None:
    ctx.call_async(other, note, "n")
    ctx.emit(seen, [2])


@other.register
async def note(ctx: Context) -> None:
    ctx.emit(seen, [3])


@order.register
async def seek(ctx: Context) -> None:
    wanted: Any = paid
    await ctx.find(wanted, "by_time", time=ctx.now())


@order.register
async def change(ctx: Context, method: str) -> None:
    rows: Any = ctx.rows(paid)
    calls: dict[str, tuple[Any, ...]] = {"delete": ("x",), "update": ("x",), "insert": (Row(1),), "put": (Row(1),)}
    await getattr(rows, method)(*calls.get(method, ({},)))


@order.register
async def look(ctx: Context, which: str) -> None:
    wanted: Any = {"gone": gone, "elsewhere": elsewhere, "name": "seen"}[which]
    ctx.rows(wanted)


app = App("shop", [order, other], events=[paid, seen, gone])
PAID, SEEN = "order/<kept order-paid>", "order/<kept seen>"


class World:
    """A serial execution whose transactions are in one epoch each."""

    def __init__(self) -> None:
        self.reference = SerialReference(app)
        self.epoch = 0

    def run(self, function: str, *arguments: Any) -> Any:
        self.epoch += 1
        request = Request("r", "order", ["a", 7], function, msgspec.msgpack.encode(arguments))
        return self.reference.run(9, self.epoch * 1_000_000, request, Place(self.epoch, 1))

    def rows(self, table: str) -> list[Any]:
        declared = app.declared_table(table)
        found = [(key, data) for (name, key), data in self.reference.state.items() if name == declared.full_name]
        return [declared.row_type.decode(data) for _, data in sorted(found)]


@pytest.fixture
def world() -> World:
    return World()


def test_a_row_has_what_a_reader_of_the_event_gets(world: World) -> None:
    assert world.run("pay", 5, 6).error is None
    first, second = world.rows(PAID)
    assert isinstance(first, KeptEvent)
    assert (first.value, second.value) == (Paid(5), Paid(6))
    assert (first.version, first.time) == (3, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    assert [first.place, second.place] == [event.id for event in world.reference.emitted]


def test_functions_read_what_their_entity_has_kept_and_what_they_emit(world: World) -> None:
    world.run("pay", 5)
    outcome = world.run("pay", 7)
    assert msgspec.msgpack.decode(outcome.result) == [5, 7]


def test_a_transaction_that_aborts_keeps_nothing(world: World) -> None:
    assert world.run("pay_and_fail").error is not None
    assert world.reference.state == {}


def test_an_event_at_another_key_is_kept_by_the_entity_that_emits_it(world: World) -> None:
    world.run("tell", "n")
    [row] = world.rows(SEEN)
    events = {event.event: event for event in world.reference.emitted}
    assert (row.value, events["seen"].key) == ([1], "n")
    assert row.place < events["seen"].id  # it is emitted there by a call, behind this function
    assert [key for name, key in world.reference.state if name == SEEN] == [("a", 7, row.place)]


def test_each_operator_keeps_its_own(world: World) -> None:
    world.run("pass_on")
    assert [row.value for row in world.rows(SEEN)] == [[2]]
    assert [row.value for row in world.rows("other/seen")] == [[3]]


def test_rows_for_a_time_have_an_end_each_and_rows_for_ever_have_none(world: World) -> None:
    world.run("pay", 5, 6)
    world.run("tell", "n")
    state = world.reference.state
    entries = [decode_entry(data) for (name, _), data in state.items() if name == agenda_of("order")]
    assert [entry.due_us for entry in entries] == [90 * 86_400_000_000 + 1_000_000] * 2


@pytest.mark.parametrize(
    "method", ["insert", "put", "update", "delete", "update_where", "delete_where", "add", "append"]
)
def test_the_engine_alone_writes_rows(world: World, method: str) -> None:
    error = world.run("change", method).error
    assert error[1] == "BadQuery"
    assert f"the rows of event 'order-paid' are kept by the engine: rows(…).{method} is for tables" in error[2]


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ("gone", "app 'shop' keeps no rows of Event('gone', int, version=1): declare it with rows=timedelta(days=90)"),
        (
            "elsewhere",
            "app 'shop' does not have Event('elsewhere', int, version=1); events whose rows it keeps: order-",
        ),
        ("name", "ctx.rows takes a table that operator.table(…) gave"),
    ],
)
def test_what_is_not_kept_is_not_read(world: World, which: str, told: str) -> None:
    error = world.run("look", which).error
    assert (error[1], told in error[2]) == ("BadQuery", True), error


def test_they_are_not_sought_by_value(world: World) -> None:
    error = world.run("seek").error
    assert (error[1], "takes a table that operator.table(…) gave, got Event('order-paid'" in error[2]) == (
        "BadQuery",
        True,
    ), error


def test_nobody_loads_them(world: World) -> None:
    request = Request("r", "order", ["a", 7], "<load rows>", msgspec.msgpack.encode(["seen", False, [[["a", 7], {}]]]))
    outcome = world.reference.run(9, 0, request)
    assert outcome.error is not None
    assert "the rows of event 'seen' are kept by the engine: functions emit it" in outcome.error[2]


def test_a_table_is_found_by_its_operator_and_its_event() -> None:
    table = app.kept_table("order", paid)
    assert app.kept_table(order, paid) is table is app.declared_table("order/order-paid") is app.declared_table(PAID)
    assert list(table.columns) == ["place", "time", "version", "value"]
    with pytest.raises(BadArguments, match=r"keeps no rows of Event\('gone'"):
        app.kept_table(order, gone)
    with pytest.raises(UnknownOperator, match="has no operator 'nix'; it has: order, other"):
        app.kept_table("nix", paid)
    with pytest.raises(BadArguments, match="has no table 'nix'; it has: order-paid, seen"):
        app.declared_table("order/nix")


def test_an_app_without_such_events_has_no_tables_more() -> None:
    plain = App("plain", [Operator("o")], events=[gone])
    assert (plain.tables, plain.kept) == ({}, {})


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Pair[int], Pair(1, 2)),
        (Noted[int], Noted(1)),
        (Noted[int] | None, Noted(1)),
        (list[Noted[Pair[int]]], [Noted(Pair(1, 2))]),
        (frozenset[Pair[str]], frozenset({Pair("a", "b")})),
    ],
    ids=str,
)
def test_types_with_parameters_are_kept(declared: Any, value: Any) -> None:
    event: Event[Any] = Event("e", declared, rows=True)
    table = App("shop", [Operator("o")], events=[event]).kept_table("o", event)
    row = table.row_type.declared("p", datetime(2026, 1, 1, tzinfo=UTC), 1, value)
    assert table.row_type.decode(table.row_type.encode(row)) == row
    assert event.decode(event.encode(value)) == value


@pytest.mark.parametrize("rows", [1, None, "1d", timedelta(0), timedelta(days=-1), timedelta(days=36_501)])
def test_a_wrong_time_is_refused(rows: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"event 'e': rows= is True, False, or a timedelta from 1 second to"):
        Event("e", int, rows=rows)


def test_a_table_and_an_event_that_is_kept_do_not_share_a_name() -> None:
    shop = Operator("shop")
    shop.table("bought", Row, key="number")
    App("shop", [shop], events=[Event("bought", int)])
    with pytest.raises(ConfigurationError, match="has a table or a view 'bought', and rows= keeps rows of event"):
        App("shop", [shop], events=[Event("bought", int, rows=True)])


def test_a_table_takes_no_such_name() -> None:
    with pytest.raises(ConfigurationError, match="a table's name is letters"):
        Table().declare("o", 1, "<kept e>", Row, key="number", partition_of=lambda key, n: 0)
