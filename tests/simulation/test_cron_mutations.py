"""Mutation proof for crons and the limit of dead calls: each rule, broken on purpose, is caught by the simulator."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace as struct_replace

from proof.simulation import random_plan, simulate
from styx.model import cron, dead_calls, delivery, giving
from styx.model.agenda import AgendaEntry, agenda_of, encode_entry, entry_key
from styx.model.cell import Cell
from styx.model.context import Context
from styx.model.function_spec import PUT_OFF_FUNCTION
from styx.schema import cron_entries
from styx.snapshot import load
from styx.worker import deliveries, generation, lock_phase
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"crons": True, "duration_s": 3.0}
CROWDED = {"laters": 1.0}
FEW = 2


def a_tick_is_given_twice(patch: pytest.MonkeyPatch) -> None:
    original = delivery._leave

    def leave(ctx: Context, cell: Cell, entry: AgendaEntry) -> None:
        original(ctx, cell, entry)
        if entry.cron:
            twice = struct_replace(cron.next_entry(entry, ctx._env.timestamp_us, giving.new_id(ctx)), cron="")
            place = ctx._cell.sibling(ctx._env, agenda_of(ctx.operator), entry_key(ctx.key, twice.id))
            place.write(ctx._chain, encode_entry(twice))

    patch.setattr(delivery, "_leave", leave)


def the_next_tick_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delivery, "_leave", lambda ctx, cell, entry: cell.write(ctx._chain, None))


def what_is_given_up_loses_the_next_tick(patch: pytest.MonkeyPatch) -> None:
    original = delivery._leave

    def leave(ctx: Context, cell: Cell, entry: AgendaEntry) -> None:
        if ctx._spec.name == PUT_OFF_FUNCTION:
            cell.write(ctx._chain, None)
        else:
            original(ctx, cell, entry)

    patch.setattr(delivery, "_leave", leave)


def a_tick_comes_early(patch: pytest.MonkeyPatch) -> None:
    def early(entry: AgendaEntry, now_us: int, its_id: str) -> AgendaEntry:
        following = cron.next_entry(entry, now_us, its_id)
        return struct_replace(following, due_us=following.due_us - 900_000)

    patch.setattr(delivery, "next_entry", early)


def the_time_is_not_the_ticks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deliveries, "moment_us", lambda entry, now_us: now_us)


def a_first_start_begins_no_cron(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(generation, "has_crons", lambda app: False)


def each_slot_begins_each_cron(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(load, "_lives_in", lambda slot, n_slots: lambda operator, key: True)


def another_version_leaves_crons_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(load, "cron_entries", lambda app, tables, here: {} if tables else cron_entries_of(app, tables, here))


cron_entries_of = cron_entries.cron_entries


@pytest.mark.parametrize(
    ("mutation", "cluster"),
    [
        (a_tick_is_given_twice, False),
        (the_next_tick_is_lost, False),
        (what_is_given_up_loses_the_next_tick, False),
        (a_tick_comes_early, False),
        (the_time_is_not_the_ticks, False),
        (a_first_start_begins_no_cron, False),
        (each_slot_begins_each_cron, False),
        (another_version_leaves_crons_as_they_are, True),
    ],
    ids=lambda value: getattr(value, "__name__", "cluster" if value else "engine"),
)
def test_the_simulator_catches(mutation: Mutation, cluster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=cluster)


@pytest.mark.parametrize("cluster", [False, True])
def test_few_dead_calls_are_kept(cluster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go, and everything is as if it ran one after the other."""
    monkeypatch.setattr(dead_calls, "DEAD_CALLS_MAX", FEW)
    for seed in range(6):
        simulate(struct_replace(random_plan(seed, cluster=cluster), ingests=0.0, **CROWDED))


def dead_calls_are_counted_as_they_were(patch: pytest.MonkeyPatch) -> None:
    """What lower transactions of the epoch have given up does not count in the lock phase."""
    patch.setattr(dead_calls, "DEAD_CALLS_MAX", FEW)
    original = lock_phase.SlotLockPhase._add

    def add(self: Any, writes: Any) -> None:
        original(self, {entity: data for entity, data in writes.items() if not entity[0].endswith("/<dead>")})

    patch.setattr(lock_phase.SlotLockPhase, "_add", add)


def test_the_simulator_catches_dead_calls_that_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    dead_calls_are_counted_as_they_were(monkeypatch)
    assert_caught(dead_calls_are_counted_as_they_were, CROWDED, cluster=False)
