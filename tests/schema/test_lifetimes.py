"""Lives when another version of the app begins: one that adds, takes away or changes the time to live."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from styx import App
from styx.model.delivery import delivery_request
from styx.model.limits import Limits
from styx.schema.conversion import conversion
from styx.state.slot_state import SlotState
from tests.model.mortal_carts import EMPTY, HOUR, MINUTE, World, an_app


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


def test_a_delivery_from_before_a_table_was_renamed_takes_nothing_with_it() -> None:
    world = World(an_app(on_delete=""))
    world.run("a", "insert", 1)
    [(due_us, its_id, table, _)] = world.entries()
    tables: dict[str, dict[Any, bytes]] = {}
    state = SlotState()
    for (name, key), data in world.reference.state.items():
        tables.setdefault(name, {})[key] = data
        state.table(name).write(1, key, data)
    made = conversion(an_app(on_delete="", was="items", name="goods"), tables, Limits(), 1)
    state = state.replaced(made.writes, made.renamed, made.dropped)
    state.as_stored()
    due_calls = state.due_calls
    assert due_calls is not None
    due_calls.take_up(its_id)  # a snapshot has it under way
    [call] = due_calls.take(due_us, 10)
    due_calls.let_go(its_id)
    assert (call.table, call.key) == (table, ("a", "~goods/[1]"))


def test_rows_that_were_given_times_keep_them_without_a_usual_one() -> None:
    world = World(an_app())
    world.run("a", "insert", 1, 60.0)
    world.run("a", "insert", 2)
    begun(world, an_app(rows_ttl="given"))
    world.advance(2 * HOUR)
    assert world.look()[1] == [2]
