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
from proof.simulation import SimulationFailure, SimulationReport, random_plan, simulate
from proof.subscriptions import app_of_listeners, say
from styx.model import event_delivery, giving, lane
from styx.model.agenda import due_of, entry_id
from styx.model.delivery import DEAD, DELIVERED, PUT_OFF, delivery_name
from styx.state import due_calls
from styx.state.due_calls import DueCalls
from styx.values.codec import decode_plain
from tests.plain_form import plain_form
from tests.simulation.mutation import ONLY_IF_ASKED
from tests.simulation.test_agenda_mutations import a_delivery_leaves_its_entry

pytestmark = plain_form

SEEDS: Final = range(40)


@pytest.fixture(autouse=True)
def programs_emit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_app, "give", say)


def run(seed: int) -> SimulationReport:
    plan = replace(random_plan(seed), **ONLY_IF_ASKED | {"laters": 1.0})
    return simulate(plan, app=app_of_listeners())


def test_events_are_handled_in_their_order() -> None:
    ended: dict[str, int] = {}
    for seed in range(10):
        for reply in run(seed).replies:
            if delivery_name(reply.request_id) is not None and reply.error is None:
                result = decode_plain(reply.result)
                how = result if isinstance(result, str) else result[0]
                ended[how] = ended.get(how, 0) + 1
    assert ended.keys() == {DELIVERED, PUT_OFF, DEAD}
    assert ended[DELIVERED] > 1_000
    assert ended[DEAD] > 20


def deliveries_overtake(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(due_calls, "lane_of", lambda its_id: "")


def what_is_put_off_leaves_its_lane(patch: pytest.MonkeyPatch) -> None:
    original = DueCalls._first

    def first(self: DueCalls, its_lane: str) -> Any:
        place = original(self, its_lane)
        entries = sorted(self._lanes.get(its_lane, []))
        if place is None or not place[0] or len(entries) < 2:
            return place
        _, table, key = entries[1]
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


NOTICED_BY: Final[dict[Callable[[pytest.MonkeyPatch], None], int]] = {a_delivery_leaves_its_entry: 2}
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
    ],
)
def test_a_mutation_is_caught(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    for seed in SEEDS[NOTICED_BY.get(mutation, 0) :]:
        try:
            run(seed)
        except SimulationFailure:
            return
    pytest.fail(f"no seed noticed: {mutation.__name__}")
