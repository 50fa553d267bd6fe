"""Mutation proof for subscriptions: events are handled once, and in the order of their lanes, on several workers and
through faults; each rule, broken on purpose, is caught by the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

import pytest
from msgspec.structs import replace

from proof import chaos_app
from proof.simulation import SimulationFailure, SimulationReport, random_plan, simulate, versions
from proof.simulation.plan import CONTROL_KINDS
from proof.subscriptions import NotAsSaid, app_of_listeners, check_heard, say, told_outside
from styx.model import delivery, event_delivery, giving, lane
from styx.model.agenda import due_of, encode_entry
from styx.model.delivery import APART, DEAD, DELIVERED, PUT_OFF, UNPLACED, delivery_name
from styx.model.serial_id import entry_id
from styx.protocol.manifest import PendingTransaction
from styx.state import due_calls
from styx.state.due_calls import DueCalls
from styx.testing import history
from styx.values.codec import decode_plain
from styx.worker.deliveries import Deliveries
from styx.worker.root import RootTransaction
from tests.plain_form import plain_form
from tests.simulation.mutation import ONLY_IF_ASKED, refuse_crash
from tests.simulation.test_agenda_mutations import a_delivery_leaves_its_entry

pytestmark = plain_form

SEEDS: Final = range(80)
UNHARMED: Final = 4
"""Of so many seeds one has no faults, so that no external function may be called again."""
LOW: Final = 3
"""In place of `TOGETHER_MAX`."""


@pytest.fixture(autouse=True)
def programs_emit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_app, "give", say)


def run(seed: int) -> SimulationReport:
    plan = replace(random_plan(seed), **ONLY_IF_ASKED | {"laters": 1.0})
    if seed % UNHARMED == 0:
        plan = replace(plan, faults=())
    told_outside.clear()
    report = simulate(plan, app=app_of_listeners())
    check_heard(report.history)
    if not report.faults and len(set(told_outside)) < len(told_outside):
        raise NotAsSaid("an external function was called again although nothing had failed")
    return report


def test_events_are_handled_in_their_order() -> None:
    ended: dict[str, int] = {}
    together = placed = unplaced = 0
    for seed in range(10):
        for reply in run(seed).replies:
            name = delivery_name(reply.request_id)
            if name is not None and reply.error is None:
                result = decode_plain(reply.result)
                how = result if isinstance(result, str) else result[0]
                ended[how] = ended.get(how, 0) + name.together
                together += how == DELIVERED and name.together > 1
                placed += how == APART and result[3] > 0
                unplaced += how == APART and result[3] == UNPLACED
    assert ended.keys() == {DELIVERED, PUT_OFF, DEAD, APART}
    assert ended[DELIVERED] > 1_000
    assert ended[DEAD] > 20
    assert together > 100
    assert placed > 20
    assert unplaced > 20


def test_so_they_are_in_clusters_whose_workers_change(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_of_listeners()
    monkeypatch.setattr(versions, "_version_of_chaos", lambda version, emitting, ingesting: app)
    together = 0
    for seed in range(8):
        plan = replace(random_plan(seed, cluster=True), **ONLY_IF_ASKED | {"laters": 1.0})
        stays = tuple(fault for fault in plan.faults if fault.kind not in CONTROL_KINDS)  # this app has one version
        report = simulate(replace(plan, faults=stays), app=app)
        check_heard(report.history)
        names = [delivery_name(reply.request_id) for reply in report.replies]
        together += sum(name is not None and name.together > 1 for name in names)
    assert together > 200


def test_a_lower_limit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (due_calls, history):
        monkeypatch.setattr(module, "TOGETHER_MAX", LOW)
    names = [delivery_name(reply.request_id) for reply in run(1).replies]
    assert max(name.together for name in names if name is not None) == LOW


def deliveries_overtake(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(due_calls, "lane_of", lambda its_id: "")


def what_is_put_off_leaves_its_lane(patch: pytest.MonkeyPatch) -> None:
    original = DueCalls._first

    def first(self: DueCalls, its_lane: str) -> Any:
        place = original(self, its_lane)
        if place is None or not place[0]:
            return place
        second = next(self._lanes[its_lane].behind_first(), None)
        if second is None:
            return place
        _, table, key = second
        data = self._find(table, key)
        return place if data is None else (*due_of(data), table, key)

    patch.setattr(DueCalls, "_first", first)


def ids_do_not_tell_the_lock_phase_from_the_first_run(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(giving, "entry_id", lambda epoch, part, *rest: entry_id(epoch, max(0, part - 1), *rest))


def a_group_is_in_the_order_of_arrival(patch: pytest.MonkeyPatch) -> None:
    arrivals = count()
    original = lane.in_lane
    patch.setattr(giving, "in_lane", lambda its_id, its_lane: f"{next(arrivals):06}{original(its_id, its_lane)}")


def what_an_aborted_transaction_gave_is_given(patch: pytest.MonkeyPatch) -> None:
    """A subscriber's error is hidden from the transaction."""
    original = event_delivery.EventDelivery._call

    def call(self: Any, context: Any, *rest: Any) -> None:
        original(self, context, *rest)
        if context._footprint is not None:
            context._calls = context._calls[:-1] or None

    patch.setattr(event_delivery.EventDelivery, "_call", call)


def lanes_have_names_of_their_process(patch: pytest.MonkeyPatch) -> None:
    original = lane.lane_name
    patch.setattr(event_delivery, "lane_name", lambda *what: original(*what, str(id(event_delivery) + next(_NUMBERS))))


_NUMBERS = count()


# Calls that are made together ------------------------------------------------------------------------------


def calls_are_made_together_in_the_wrong_order(patch: pytest.MonkeyPatch) -> None:
    original = delivery._all_standing
    patch.setattr(delivery, "_all_standing", lambda ctx, wanted: original(ctx, wanted)[::-1])


def the_call_that_failed_takes_the_others_with_it(patch: pytest.MonkeyPatch) -> None:
    def set_apart(ctx: Any, wanted: Any, error: Any) -> list[Any]:
        for cell, _ in delivery._all_standing(ctx, wanted):
            cell.write(ctx._chain, None)
        return [APART, *error, wanted.failed]

    patch.setattr(delivery, "_set_apart", set_apart)


def another_call_is_set_apart(patch: pytest.MonkeyPatch) -> None:
    """It counts as an attempt of its own, and the one that fails goes on to fail with others."""
    original = delivery._set_apart

    def set_apart(ctx: Any, wanted: Any, error: Any) -> list[Any]:
        standing = delivery._all_standing(ctx, wanted)
        if 0 < wanted.failed < len(standing):
            cell, entry = standing[0]
            cell.write(ctx._chain, None)
            standing[wanted.failed][0].write(ctx._chain, encode_entry(replace(entry, due_us=1)))
        return original(ctx, wanted, error)

    patch.setattr(delivery, "_set_apart", set_apart)


def more_are_made_together_than_the_limit(patch: pytest.MonkeyPatch) -> None:
    """The limit is low here, so that it is soon reached."""
    patch.setattr(history, "TOGETHER_MAX", LOW)


def one_of_a_lane_is_passed_over(patch: pytest.MonkeyPatch) -> None:
    original = DueCalls._behind
    patch.setattr(DueCalls, "_behind", lambda self, place, most: original(self, place, most)[1:])


def a_snapshot_has_the_first_alone(patch: pytest.MonkeyPatch) -> None:
    original = Deliveries.readmit

    def readmit(self: Deliveries, slot: int, pending: PendingTransaction) -> Any:
        root = original(self, slot, pending)
        if root is not None:
            root.params = delivery._encode(replace(delivery._decode_delivery(root.params), behind=()))
        return root

    patch.setattr(Deliveries, "readmit", readmit)


def a_snapshot_forgets_whose_delivery_is_under_way(patch: pytest.MonkeyPatch) -> None:
    """So calls may be made twice, at first with others behind them."""
    patch.setattr(DueCalls, "take_up", lambda self, its_id: None)


def calls_together_wait_for_external_functions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RootTransaction, "needs_external", lambda self: setattr(self, "external", True))


NOTICED_BY: Final[dict[Callable[[pytest.MonkeyPatch], None], int]] = {
    a_delivery_leaves_its_entry: 2,
    a_snapshot_has_the_first_alone: 53,
}
"""Seeds that notice soon what others notice late."""


@pytest.mark.parametrize(
    "mutation",
    [
        deliveries_overtake,
        what_is_put_off_leaves_its_lane,
        ids_do_not_tell_the_lock_phase_from_the_first_run,
        a_group_is_in_the_order_of_arrival,
        a_delivery_leaves_its_entry,
        what_an_aborted_transaction_gave_is_given,
        lanes_have_names_of_their_process,
        calls_are_made_together_in_the_wrong_order,
        the_call_that_failed_takes_the_others_with_it,
        another_call_is_set_apart,
        more_are_made_together_than_the_limit,
        one_of_a_lane_is_passed_over,
        a_snapshot_has_the_first_alone,
        a_snapshot_forgets_whose_delivery_is_under_way,
        calls_together_wait_for_external_functions,
    ],
)
def test_a_mutation_is_caught(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    for seed in SEEDS[NOTICED_BY.get(mutation, 0) :]:
        try:
            run(seed)
        except (SimulationFailure, NotAsSaid) as failure:
            refuse_crash(mutation, failure)
            return
    pytest.fail(f"no seed noticed: {mutation.__name__}")
