"""Mutation proof for calls that are given for later: each rule, broken on purpose, is caught by the simulator."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace as struct_replace

from styx.model import delivery, giving, serial_id
from styx.model.agenda import AgendaEntry
from styx.model.context import Context
from styx.protocol.manifest import PendingTransaction
from styx.sequencer.epoch_record import SlotBatch
from styx.state.due_calls import DueCall, DueCalls
from styx.state.slot_state import SlotState
from styx.worker.deliveries import Deliveries
from styx.worker.intake import Intake
from styx.worker.root import RootTransaction
from styx.worker.worker import Worker
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"laters": 1.0}


def a_delivery_leaves_its_entry(patch: pytest.MonkeyPatch) -> None:
    async def deliver(ctx: Context, wanted: Any) -> str:
        ids = (wanted.id, *wanted.behind)
        entries = [delivery._standing(ctx, wanted.last if its_id == wanted.id else its_id, its_id)[1] for its_id in ids]
        for entry in entries:
            if entry is not None:
                giving.call_encoded(ctx, entry.operator, entry.function, entry.key, entry.params)
        return delivery.DELIVERED if any(entries) else delivery.WITHDRAWN

    patch.setattr(delivery, "_deliver", deliver)
    patch.setattr(delivery, "_functions", {})


def replays_take_what_is_due_at_another_time(patch: pytest.MonkeyPatch) -> None:
    original = Intake.replay

    def replay(self: Intake, plan: Any) -> Any:
        taken = self.deliveries.take
        patched = lambda slot, now_us, limit: taken(slot, now_us - 5_000, limit)  # noqa: E731 - it fits a line
        self.deliveries.take = patched  # type: ignore[method-assign]
        try:
            return original(self, plan)
        finally:
            self.deliveries.take = taken  # type: ignore[method-assign]

    patch.setattr(Intake, "replay", replay)


def the_record_counts_no_calls(patch: pytest.MonkeyPatch) -> None:
    original = Intake.form

    def form(self: Intake, counter: int) -> Any:
        roots, batches = original(self, counter)
        return roots, [SlotBatch(*[getattr(b, n) for n in b.__struct_fields__[:-2]]) for b in batches]

    patch.setattr(Intake, "form", form)


def a_snapshot_forgets_whose_delivery_is_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DueCalls, "take_up", lambda self, its_id: None)


def a_snapshot_forgets_deliveries(patch: pytest.MonkeyPatch) -> None:
    original = Intake.rest

    def rest(self: Intake, slot: int) -> tuple[int, list[PendingTransaction], Any]:
        next_offset, pending, passed = original(self, slot)
        return next_offset, [each for each in pending if each.offset >= 0], passed

    patch.setattr(Intake, "rest", rest)


def what_fails_is_not_put_off(patch: pytest.MonkeyPatch) -> None:
    original = Deliveries.ended

    def ended(self: Deliveries, root: RootTransaction) -> bool:
        if root.failure is not None:
            self.under_way -= 1
            due_calls = self._states[root.slot].due_calls
            assert due_calls is not None
            assert root.entry is not None
            due_calls.let_go(root.entry)
            return True
        return original(self, root)

    patch.setattr(Deliveries, "ended", ended)


def what_fails_goes_on_under_the_delivery(patch: pytest.MonkeyPatch) -> None:
    """It is carried as it is, and tried again at once, for ever."""
    original = Deliveries.ended
    patch.setattr(Deliveries, "ended", lambda self, root: root.failure is None and original(self, root))


def attempts_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    def replace(entry: Any, **changes: Any) -> Any:
        if isinstance(entry, AgendaEntry) and changes.keys() == {"due_us"}:
            changes["attempt"] = 0
        return struct_replace(entry, **changes)

    patch.setattr(delivery, "replace", replace)


def an_id_forgets_the_transaction(patch: pytest.MonkeyPatch) -> None:
    forgetful = lambda epoch, behind, tid, path, number: serial_id.entry_id(0, behind, 0, path, number)  # noqa: E731
    patch.setattr(giving, "entry_id", forgetful)


def commits_do_not_reach_the_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SlotState, "_was_given", lambda self, name, key, data: None)


def loading_makes_no_order(patch: pytest.MonkeyPatch) -> None:
    original = SlotState.as_stored

    def as_stored(self: SlotState) -> None:
        order = SlotState._order_calls
        SlotState._order_calls = lambda self: None  # type: ignore[method-assign]
        try:
            original(self)
        finally:
            SlotState._order_calls = order  # type: ignore[method-assign]

    patch.setattr(SlotState, "as_stored", as_stored)


def nobody_asks_for_the_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Worker, "_ask_for_time", lambda self: None)


def calls_have_the_tids_of_requests(patch: pytest.MonkeyPatch) -> None:
    original = Intake._deliver

    def deliver(self: Intake, slot: int, counter: int, batch: SlotBatch, due: list[DueCall], roots: Any) -> None:
        original(self, slot, counter - batch.count, batch, due, roots)

    patch.setattr(Intake, "_deliver", deliver)


def a_put_off_call_keeps_its_old_request(patch: pytest.MonkeyPatch) -> None:
    """A snapshot finds the delivery instead of what puts it off."""
    original = Deliveries.ended

    def ended(self: Deliveries, root: RootTransaction) -> bool:
        payload = root.payload
        over = original(self, root)
        root.payload = payload
        return over

    patch.setattr(Deliveries, "ended", ended)


MUTATIONS = [
    a_delivery_leaves_its_entry,
    replays_take_what_is_due_at_another_time,
    the_record_counts_no_calls,
    a_snapshot_forgets_whose_delivery_is_under_way,
    a_snapshot_forgets_deliveries,
    what_fails_is_not_put_off,
    what_fails_goes_on_under_the_delivery,
    attempts_are_not_counted,
    an_id_forgets_the_transaction,
    commits_do_not_reach_the_order,
    loading_makes_no_order,
    nobody_asks_for_the_time,
    calls_have_the_tids_of_requests,
    a_put_off_call_keeps_its_old_request,
]


NOTICED_BY: dict[Mutation, int] = {
    attempts_are_not_counted: 8,
}
"""Seeds that are tried first."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False, first=NOTICED_BY.get(mutation, 0))
