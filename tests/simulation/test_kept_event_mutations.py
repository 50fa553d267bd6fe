"""Mutation proof for kept events: each rule, broken on purpose in the engine, is caught by the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from styx.model import emitting, event_write
from styx.model.agenda import LOCK_PHASE
from styx.model.context import Context
from styx.model.kept_event import KeptEvent, keep
from styx.model.lifetime import keep_life
from styx.model.serial_id import event_id
from styx.model.serial_place import serial_place
from styx.relational.table import Table
from styx.testing.serial import _Transaction
from styx.worker.footprint import Footprint
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"emits": 1.0}


def in_engine(context: Context) -> bool:
    """Whether the engine runs the function, and not the serial replay."""
    return not isinstance(context._env, _Transaction)


def kept_events_have_no_end(patch: pytest.MonkeyPatch) -> None:
    def live(store: Any, table: Table, *rest: Any) -> None:
        if not table.keeps_event or not in_engine(store.context):
            keep_life(store, table, *rest)

    patch.setattr("styx.model.row_statements.keep_life", live)


def they_are_kept_in_spite_of_an_abort(patch: pytest.MonkeyPatch) -> None:
    """What a function keeps stands in the slot at once, whatever becomes of its transaction."""

    def at_once(context: Context, event: Any, tables: Any, place: str, value: Any) -> None:
        env, table = context._env, tables[context._spec.operator]
        if not isinstance(env, Footprint):
            keep(context, event, tables, place, value)
            return
        time = env.now()
        row: KeptEvent[Any] = table.row_type.declared(place, time, event.version, value)
        assert env.here is not None
        entity = context._key if isinstance(context._key, tuple) else (context._key,)
        env.here.state.table(table.full_name).write(env.here.epoch, (*entity, place), table.row_type.encode(row))

    patch.setattr(emitting, "keep", at_once)


def what_runs_again_keeps_nothing(patch: pytest.MonkeyPatch) -> None:
    def once(context: Context, *rest: Any) -> None:
        if not in_engine(context) or context._env.place()[1] != LOCK_PHASE:
            keep(context, *rest)

    patch.setattr(emitting, "keep", once)


def an_event_at_another_key_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    def here(context: Context, event: Any, *rest: Any) -> None:
        if not in_engine(context) or event.name != "noticed":
            keep(context, event, *rest)

    patch.setattr(emitting, "keep", here)


def a_recovery_keeps_under_another_place(patch: pytest.MonkeyPatch) -> None:
    """So an event that was kept is there twice for whoever has read it before."""
    loads: dict[int, list[Any]] = {}

    def new_event_id(context: Context) -> str:
        env: Any = context._env
        epoch, part = env.place()
        context._ids += 1
        number = context._ids
        slot = getattr(env, "here", None)
        if slot is not None and in_engine(context):
            known = loads.setdefault(slot.index, [])
            if slot not in known:
                known.append(slot)  # a slot is made anew by whoever recovers it
            number += known.index(slot)
        return event_id(epoch, part, env.tid, serial_place(context), number)

    patch.setattr(event_write, "new_event_id", new_event_id)
    patch.setattr(emitting, "new_event_id", new_event_id)


MUTATIONS = [
    kept_events_have_no_end,
    they_are_kept_in_spite_of_an_abort,
    what_runs_again_keeps_nothing,
    an_event_at_another_key_is_not_kept,
    a_recovery_keeps_under_another_place,
]
NOTICED_BY: dict[Mutation, int] = {}
"""Seeds that notice what few do."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False, first=NOTICED_BY.get(mutation, 0))
