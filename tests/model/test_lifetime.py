"""Lifetimes of values and rows, one transaction after the other in the serial reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from styx import ConfigurationError, Context, Operator
from styx.model import delivery, expiry, lifetime
from styx.model.agenda import decode_entry
from styx.model.delivery import delivery_request
from styx.model.row_statements import RowStatements
from tests.model.mortal_carts import EMPTY, HOUR, MINUTE, Item, World, an_app
from tests.plain_form import plain_form


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

    def standing(ctx: Context, last: str, its_id: str) -> Any:
        cell, entry = original(ctx, last, its_id)
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
