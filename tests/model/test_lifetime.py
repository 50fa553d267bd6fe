"""Lifetimes of values and rows, one transaction after the other in the serial reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Index, Operator, Ref, Table
from styx.messages import Request
from styx.model import delivery, expiry, lifetime
from styx.model.agenda import agenda_of, decode_entry, due_of
from styx.model.delivery import delivery_request, put_off_request
from styx.model.row_statements import RowStatements
from styx.testing.serial import Place, SerialReference
from tests.plain_form import plain_form

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DELIVERED = Place(1, 1, delivers=True)


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


EMPTY: Any = [None, [], 0, 0]


def test_a_value_that_is_not_written_is_deleted_when_its_time_has_come_and_not_before() -> None:
    world = World(an_app())
    world.run("a", "put", 1)
    world.advance(HOUR - timedelta(microseconds=1))
    assert world.look()[0] == 1
    world.advance(timedelta(microseconds=1))
    assert world.look()[0] is None
    assert world.entries() == []
    assert world.told == ["expired"]


def test_each_write_of_a_value_begins_its_life_anew_also_that_of_the_same_value() -> None:
    world = World(an_app())
    for _ in range(5):
        world.run("a", "put", 1)
        assert len(world.entries()) == 1
        world.advance(HOUR - MINUTE)
        assert world.look()[0] == 1
    world.advance(MINUTE)
    assert world.look()[0] is None


def test_a_value_that_was_deleted_and_made_again_lives_its_own_life() -> None:
    world = World(an_app())
    world.run("a", "put", 1)
    world.advance(HOUR - MINUTE)
    world.run("a", "delete")
    assert world.entries() == []
    world.run("a", "put", 2)
    world.advance(2 * MINUTE)
    assert world.look()[0] == 2
    world.advance(HOUR)
    assert world.look()[0] is None


def test_an_expiry_under_way_does_not_delete_what_is_written_before_it() -> None:
    world = World(an_app())
    world.run("a", "put", 1)
    [(due_us, its_id, table, key)] = world.entries()
    under_way = delivery_request(table, key, its_id, due_us)
    world.run("a", "put", 1)
    world.deliver(under_way)
    assert (world.told, world.look()[0]) == (["withdrawn"], 1)


def test_rows_live_for_their_tables_time() -> None:
    world = World(an_app(ttl=None))
    world.run("a", "put", 1)
    world.run("a", "insert", 1)
    world.run("b", "put_row", 1)
    world.advance(HOUR - MINUTE)
    world.run("b", "put_row", 1)
    world.advance(MINUTE)
    assert world.look("a") == [1, [], 0, 0]
    assert world.look("b") == [None, [1], 1, 1]
    world.advance(HOUR)
    assert world.look("b") == EMPTY
    assert world.entries() == []


@pytest.mark.parametrize(
    "write",
    [("put_row", 1), ("insert", 1, None, "replace"), ("update", 1), ("update_all",)],
    ids=lambda write: str(write[0]),
)
def test_each_write_of_a_row_begins_its_life_anew(write: tuple[Any, ...]) -> None:
    world = World(an_app())
    world.run("a", "insert", 1)
    world.advance(HOUR - MINUTE)
    world.run("a", *write)
    world.advance(HOUR - MINUTE)
    assert world.look()[1] == [1]
    world.advance(MINUTE)
    assert world.look() == EMPTY


def test_a_row_that_is_kept_by_insert_is_not_written() -> None:
    world = World(an_app())
    world.run("a", "insert", 1)
    world.advance(HOUR - MINUTE)
    world.run("a", "insert", 1, None, "keep")
    world.advance(MINUTE)
    assert world.look() == EMPTY


def test_a_row_has_the_time_that_it_was_given_also_when_it_is_updated() -> None:
    world = World(an_app())
    world.run("a", "insert", 1, 60.0)
    world.run("a", "put_row", 2, 7200.0)
    world.run("a", "insert", 3)
    world.advance(timedelta(seconds=59))
    world.run("a", "update", 1)
    world.advance(timedelta(seconds=59))
    assert world.look()[1] == [1, 2, 3]
    world.advance(timedelta(seconds=1))
    assert world.look()[1] == [2, 3]
    world.advance(HOUR)
    assert world.look()[1] == [2]
    world.run("a", "put_row", 2)  # the usual time again
    world.advance(HOUR)
    assert world.look() == EMPTY


def test_where_rows_are_given_their_times_others_live_on() -> None:
    world = World(an_app(rows_ttl="given"))
    world.run("a", "insert", 1, 60.0)
    world.run("a", "insert", 2)
    world.run("a", "insert", 3, 60.0)
    world.run("a", "put_row", 3)
    world.run("a", "update", 2)
    world.advance(MINUTE)
    assert world.look()[1] == [2, 3]
    assert world.entries() == []


def test_a_row_that_was_deleted_and_inserted_again_lives_its_own_life() -> None:
    world = World(an_app())
    world.run("a", "insert", 1)
    world.advance(HOUR - MINUTE)
    world.run("a", "remove", 1)
    assert world.entries() == []
    world.run("a", "insert", 1)
    world.advance(2 * MINUTE)
    assert world.look()[1] == [1]


def test_a_row_that_is_referred_to_stays_and_goes_when_nothing_refers_to_it_any_more() -> None:
    world = World(an_app())
    world.run("a", "insert", 1)
    world.run("a", "refer", 7, 1)
    world.advance(HOUR)
    assert world.look()[1] == [1]
    [[kept, kind, message]] = world.told
    assert (kept, kind) == ("kept", "Error")
    assert "refers to it" in message
    world.advance(10 * HOUR)
    assert 20 < len(world.told) < 30  # 1, 2, 4 seconds …, then once an hour
    assert len(world.entries()) == 1
    world.run("a", "refer", 7, None)
    world.advance(HOUR)
    assert world.look() == EMPTY


@pytest.mark.parametrize(("on_delete", "left"), [("cascade", None), ("set_null", [7, None])])
def test_an_expiry_does_what_references_say(on_delete: str, left: Any) -> None:
    world = World(an_app(on_delete=on_delete))
    world.run("a", "insert", 1)
    world.run("a", "refer", 7, 1)
    world.advance(HOUR)
    assert (world.look(), world.run("a", "part", 7)) == (EMPTY, left)


def test_a_transaction_that_aborts_begins_no_life() -> None:
    world = World(an_app())
    world.run("a", "insert", 1)
    before = world.entries()
    world.advance(MINUTE)
    assert "exists already" in world.run("a", "insert", 1)
    assert world.entries() == before


# Versions of the app ---------------------------------------------------------------------------------------


def begun(world: World, app: App) -> World:
    """Another version of the app begins, which must not depend on what a first conversion has left."""
    world.reference.begin_version(app)
    state = dict(world.reference.state)
    world.reference.begin_version(app)
    assert world.reference.state == state
    return world


def test_what_was_there_lives_from_the_deployment_on() -> None:
    world = World(an_app(ttl=None, rows_ttl=None))
    world.run("a", "put", 1)
    world.run("a", "insert", 1)
    world.advance(100 * HOUR)
    begun(world, an_app())
    world.advance(MINUTE)
    assert world.told == ["begun", "begun"]
    world.advance(HOUR - 2 * MINUTE)
    assert world.look() == [1, [1], 1, 1]
    world.run("a", "put", 2)
    world.advance(MINUTE)
    assert world.look() == [2, [], 0, 0]
    world.advance(HOUR)
    assert world.look() == EMPTY


def test_a_write_before_a_life_has_begun_begins_it() -> None:
    world = World(an_app(ttl=None, rows_ttl=None))
    world.run("a", "put", 1)
    begun(world, an_app())
    world.run("a", "put", 2)
    world.advance(HOUR)
    assert world.told == ["expired"]
    assert world.look() == EMPTY


def test_what_was_to_end_lives_on_if_the_new_version_says_so() -> None:
    world = World(an_app())
    world.run("a", "put", 1)
    world.run("a", "insert", 1)
    [(due_us, its_id, table, key), _] = world.entries()
    begun(world, an_app(ttl=None, rows_ttl=None))
    assert world.entries() == []
    world.deliver(delivery_request(table, key, its_id, due_us))
    assert (world.told, world.look()) == (["withdrawn"], [1, [1], 1, 1])


@pytest.mark.parametrize("ttl", [timedelta(minutes=10), timedelta(hours=5)])
def test_another_time_counts_from_the_last_write(ttl: timedelta) -> None:
    world = World(an_app())
    world.run("a", "put", 1)
    world.run("a", "insert", 1)
    world.run("a", "insert", 2, 1800.0)
    world.advance(5 * MINUTE)
    begun(world, an_app(ttl=ttl, rows_ttl=ttl))
    world.advance(ttl - 5 * MINUTE - timedelta(microseconds=1))
    assert world.look()[0] == 1
    assert (1 in world.look()[1]) is True
    assert (2 in world.look()[1]) is (ttl < timedelta(minutes=30))
    world.advance(timedelta(microseconds=1))
    assert world.look()[0] is None
    assert (1 in world.look()[1]) is False


def test_the_rows_of_a_table_that_is_renamed_live_as_they_did() -> None:
    world = World(an_app(on_delete=""))
    world.run("a", "insert", 1)
    world.run("a", "insert", 2, 60.0)
    begun(world, an_app(on_delete="", was="items", name="goods"))
    assert len(world.entries()) == 2
    world.advance(MINUTE)
    assert world.look()[1] == [1]
    world.advance(HOUR)
    assert world.look() == EMPTY


def test_rows_that_were_given_times_keep_them_without_a_usual_one() -> None:
    world = World(an_app())
    world.run("a", "insert", 1, 60.0)
    world.run("a", "insert", 2)
    begun(world, an_app(rows_ttl="given"))
    world.advance(2 * HOUR)
    assert world.look()[1] == [2]


# Composite keys, partitions, loads -------------------------------------------------------------------------


def test_composite_keys_and_odd_texts_have_entries_of_their_own() -> None:
    names = {
        lifetime.name_of_row(table, row) for table in ("t", "t/x") for row in ([1], ["1"], [1, 2], ["a", "b"], ["a/b"])
    }
    assert len(names) == 10
    assert lifetime.VALUE not in names


# Wrong uses ------------------------------------------------------------------------------------------------

WRONG: list[Any] = [
    0,
    1,
    3600.0,
    "1h",
    True,
    timedelta(0),
    timedelta(seconds=-1),
    timedelta(milliseconds=999),
    timedelta(days=36_501),
    timedelta.max,
    HOUR // timedelta(microseconds=1),
    [HOUR],
    float("nan"),
    {"hours": 1},
]


@pytest.mark.parametrize("ttl", [*WRONG, "given"], ids=repr)
def test_an_operator_refuses_what_is_no_time(ttl: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=re.escape("operator 'cart': ttl= is a timedelta from 1 second to 36500")
    ):
        Operator("cart", ttl=ttl)


@pytest.mark.parametrize("ttl", WRONG, ids=repr)
def test_a_table_refuses_what_is_no_time(ttl: Any) -> None:
    with pytest.raises(ConfigurationError, match='or "given" if only rows that are given one have one'):
        Operator("cart").table("items", Item, key="id", ttl=ttl)


@pytest.mark.parametrize("seconds", [0, -1, 0.5, 4e9])
def test_a_statement_refuses_what_is_no_time(seconds: float) -> None:
    world = World(an_app())
    for function in ("insert", "put_row"):
        assert "ttl= is a timedelta from 1 second" in world.run("a", function, 1, seconds)
    assert world.look() == EMPTY


def test_a_statement_gives_no_time_to_a_row_of_a_table_without_one() -> None:
    world = World(an_app(rows_ttl=None))
    for function in ("insert", "put_row"):
        assert 'declare the table with ttl="given"' in world.run("a", function, 1, 60.0)
    assert world.look() == EMPTY


def test_nothing_is_added_to_a_row_that_lives_for_a_time() -> None:
    world = World(an_app())
    world.run("a", "insert", 1)
    assert "each write notes when it was" in world.run("a", "add", 1)


def test_no_client_and_no_function_can_name_the_end_of_a_life() -> None:
    world = World(an_app())
    world.run("a", "put", 1)
    assert "UnknownFunction" in world.run("a", lifetime.EXPIRE_FUNCTION)


# Each rule, broken on purpose ------------------------------------------------------------------------------


def it_expires_although_it_was_written_since(patch: pytest.MonkeyPatch) -> None:
    original = delivery._standing

    def standing(ctx: Context, wanted: Any) -> Any:
        cell, entry = original(ctx, wanted)
        data = cell.read(ctx._chain)
        return cell, entry if data is None else decode_entry(data)

    patch.setattr(delivery, "_standing", standing)


def writes_do_not_begin_a_life_anew(patch: pytest.MonkeyPatch) -> None:
    original = lifetime._live

    def live(context: Context, operator: str, key: Any, last: str, life: Any) -> None:
        if lifetime._cell_of(context, operator, key, last).read(context._chain) is None:
            original(context, operator, key, last, life)

    patch.setattr(lifetime, "_live", live)


def it_never_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(expiry, "expire", lambda *_: expiry.LIVES_ON)
    patch.setattr(delivery, "expire", lambda *_: expiry.LIVES_ON)


def it_expires_early(patch: pytest.MonkeyPatch) -> None:
    original = lifetime._ending
    early = lambda due_us, *rest: original(due_us - 1, *rest)  # noqa: E731 - it fits a line
    patch.setattr(lifetime, "_ending", early)


def a_deletion_leaves_the_end(patch: pytest.MonkeyPatch) -> None:
    original = RowStatements._change

    def change(self: Any, table: Any, key: Any, data: Any, ttl_us: int = lifetime.AS_BEFORE) -> None:
        original(self, table, key, data, ttl_us) if data is not None else self._store.write(table, key, data)

    patch.setattr(RowStatements, "_change", change)


def an_update_forgets_the_own_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lifetime, "_own_life", lambda data: None)


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]]] = [
    (it_expires_although_it_was_written_since, test_an_expiry_under_way_does_not_delete_what_is_written_before_it),
    (writes_do_not_begin_a_life_anew, test_each_write_of_a_value_begins_its_life_anew_also_that_of_the_same_value),
    (it_never_expires, test_rows_live_for_their_tables_time),
    (it_expires_early, test_a_value_that_is_not_written_is_deleted_when_its_time_has_come_and_not_before),
    (a_deletion_leaves_the_end, test_a_row_that_was_deleted_and_inserted_again_lives_its_own_life),
    (an_update_forgets_the_own_time, test_a_row_has_the_time_that_it_was_given_also_when_it_is_updated),
]


@plain_form
@pytest.mark.parametrize(("breaks", "test"), BROKEN, ids=[each.__name__ for each, _ in BROKEN])
def test_the_tests_notice(breaks: Callable[[pytest.MonkeyPatch], None], test: Callable[[], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        breaks(patch)
        with pytest.raises((AssertionError, ValueError)):
            test()
