"""Mutation proof for what lives for a time: each rule, broken on purpose in the engine, is caught by the simulator.

The serial replay shares the programming model, so these break it for the engine alone. `tests/model/test_lifetime.py`
breaks the rules that both share.
"""

from __future__ import annotations

from typing import Any

import pytest

from styx.model import delivery, lifetime
from styx.model.agenda import decode_entry
from styx.model.context import Context
from styx.model.expiry import LIVES_ON, expire
from styx.state.due_calls import DueCall, DueCalls
from styx.state.slot_state import SlotState
from styx.testing.serial import _Transaction
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"lives": 1.0}


def in_engine(context: Context) -> bool:
    """Whether the engine runs the function, and not the serial replay."""
    return not isinstance(context._env, _Transaction)


def it_expires_although_it_was_written_since(patch: pytest.MonkeyPatch) -> None:
    original = delivery._standing

    def standing(ctx: Context, last: str, its_id: str) -> Any:
        cell, entry = original(ctx, last, its_id)
        data = cell.read(ctx._chain)
        if entry is None and data is not None and in_engine(ctx):
            entry = decode_entry(data)
        return cell, entry

    patch.setattr(delivery, "_standing", standing)


def it_never_expires(patch: pytest.MonkeyPatch) -> None:
    original = expire
    patch.setattr(delivery, "expire", lambda ctx, *rest: LIVES_ON if in_engine(ctx) else original(ctx, *rest))


def it_expires_early(patch: pytest.MonkeyPatch) -> None:
    original = DueCalls.take

    def take(self: DueCalls, now_us: int, limit: int) -> list[DueCall]:
        return original(self, now_us + 3_000_000, limit)

    def has_due(self: DueCalls, now_us: int) -> bool:
        return self.waiting or (self.next_us is not None and self.next_us <= now_us + 3_000_000)

    patch.setattr(DueCalls, "take", take)
    patch.setattr(DueCalls, "has_due", has_due)


def a_write_does_not_begin_the_life_anew(patch: pytest.MonkeyPatch) -> None:
    original = lifetime._live

    def live(context: Context, operator: str, key: Any, last: str, life: Any) -> None:
        cell = lifetime._cell_of(context, operator, key, last)
        if not in_engine(context) or cell.read(context._chain) is None:
            original(context, operator, key, last, life)

    patch.setattr(lifetime, "_live", live)


def what_is_moved_is_not_in_the_order(patch: pytest.MonkeyPatch) -> None:
    original = SlotState._was_given

    def was_given(self: SlotState, name: str, key: Any, data: bytes | None) -> None:
        if not key[-1].startswith(lifetime.LIFE):
            original(self, name, key, data)

    patch.setattr(SlotState, "_was_given", was_given)


def an_update_forgets_the_own_time(patch: pytest.MonkeyPatch) -> None:
    original = lifetime.keep_life

    def keep_life(store: Any, table: Any, key: Any, deleted: bool, given_us: int) -> None:
        if given_us != lifetime.AS_BEFORE or deleted or not in_engine(store.context):
            original(store, table, key, deleted, given_us)

    patch.setattr("styx.model.row_statements.keep_life", keep_life)


def a_deletion_leaves_the_end(patch: pytest.MonkeyPatch) -> None:
    original = lifetime.value_deleted

    def value_deleted(context: Context) -> None:
        if not in_engine(context):
            original(context)

    patch.setattr("styx.model.reference_entries.value_deleted", value_deleted)


MUTATIONS = [
    it_expires_although_it_was_written_since,
    it_never_expires,
    it_expires_early,
    a_write_does_not_begin_the_life_anew,
    what_is_moved_is_not_in_the_order,
    an_update_forgets_the_own_time,
    a_deletion_leaves_the_end,
]

NOTICED_BY: dict[Mutation, int] = {
    it_expires_although_it_was_written_since: 4,
    it_expires_early: 1,
    a_write_does_not_begin_the_life_anew: 1,
    an_update_forgets_the_own_time: 1,
    a_deletion_leaves_the_end: 1,
}
"""A seed that notices a mutation; 0 for those that are not named."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.__name__ for mutation in MUTATIONS])
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False, first=NOTICED_BY.get(mutation, 0))
