"""Epochs under contention: how many new requests they take beside carried ones, that none of them starves, and that
nothing waits where nothing is carried. Each rule is broken on purpose, too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from benchmarks.micro.engine_loop import EngineLoop
from proof.chaos_app import app as chaos_app
from proof.random_requests import Profile, random_request
from styx.messages import decode_reply, encode_request
from styx.model.limits import PATCH_ROUNDS_MAX, Limits
from styx.model.request import AppRouter
from styx.worker.intake import Intake
from styx.worker.pressure import CARRIED_SHARE, ROUND_TRANSACTIONS, Pressure
from styx.worker.root import RootTransaction
from tests.plain_form import plain_form
from tests.protocol import scripted_app
from tests.protocol.cluster import script_request
from tests.worker.test_intake import arrivals, counts, intake

pytestmark = plain_form

EPOCH_MAX = 64
ENDS = 4
"""Transactions that an epoch under contention ends, however many it has."""


class Epoch(NamedTuple):
    """What an epoch had: transactions, requests by slot that were new among them, and how many ended."""

    size: int
    new: dict[int, int]
    ended: list[RootTransaction]


def settle(made: Intake) -> None:
    """Behind the small first epochs of a generation."""
    made.pressure.transactions = EPOCH_MAX


def epoch(made: Intake, counter: int, ends: Callable[[list[RootTransaction]], list[RootTransaction]]) -> Epoch:
    """One epoch, in which those that do not end are carried."""
    roots, batches = made.form(counter)
    ended = ends(sorted(roots, key=lambda root: root.tid))
    made.carried = [root for root in roots if root not in ended]
    made.pressure.contended(len(ended), len(made.carried), not made.backlog)
    return Epoch(len(roots), counts(batches), ended)


def lowest(roots: list[RootTransaction]) -> list[RootTransaction]:
    return roots[:ENDS]


def everything(roots: list[RootTransaction]) -> list[RootTransaction]:
    return roots


def contended(n_slots: int = 2, waiting: int = 200) -> Intake:
    made = intake(n_slots, Limits(epoch_transactions_max=EPOCH_MAX))
    settle(made)
    for slot in range(n_slots):
        made.arrive(slot, arrivals(slot, waiting))
    return made


# The rules -----------------------------------------------------------------------------------------------------


def epochs_shrink_to_what_can_end_and_all_have_their_turn() -> None:
    made = contended()
    epochs: list[Epoch] = []
    while made.has_work:
        assert len(epochs) < 1_000, "it does not come to an end"
        epochs.append(epoch(made, 1000 * len(epochs), lowest))
    assert sum(len(each.ended) for each in epochs) == 400
    for before, each in pairwise(epochs):
        carried = before.size - len(before.ended)
        if carried:
            assert each.size <= max(ENDS // 2, carried + 1), "what is carried piles up"
    # Once what the first epoch took has been worked off, none is much larger than what can end.
    assert max(each.size for each in epochs[2 * EPOCH_MAX // ENDS :]) <= 2 * ENDS
    for slot in range(2):
        offsets = [root.offset for each in epochs for root in each.ended if root.slot == slot]
        assert offsets == sorted(offsets), "requests of a slot ended out of their order"


def there_is_always_room_for_one() -> None:
    """Beside what never ends, one request after the other goes on, and slots take turns."""
    made = contended(n_slots=3, waiting=10)
    made.pressure.settled = 6
    stuck: list[RootTransaction] = []

    def others(roots: list[RootTransaction]) -> list[RootTransaction]:
        stuck[:] = stuck or roots
        return [root for root in roots if root not in stuck]

    entered = [epoch(made, 1000 * number, others).new for number in range(7)][1:]
    assert len(stuck) == 6
    assert [sum(each.values()) for each in entered] == [1] * 6
    assert [sum(each[slot] for each in entered) for slot in range(3)] == [2, 2, 2]


def nothing_waits_where_nothing_is_carried() -> None:
    made = contended()
    sizes = [epoch(made, 1000 * number, everything).size for number in range(6)]
    assert sizes == [64, 64, 64, 64, 64, 64]


def few_that_are_carried_are_no_reason_to_wait() -> None:
    made = contended()
    for number in range(5):
        assert epoch(made, 1000 * number, lambda roots: roots[: 16 * len(roots) // 17 + 1]).size == EPOCH_MAX


def what_is_idle_doubles_its_epochs() -> None:
    made = contended(n_slots=1, waiting=0)
    made.pressure.settled = 2
    settled = []
    for number in range(6):
        made.arrive(0, arrivals(0, 1, first=number))
        epoch(made, 1000 * number, everything)
        settled.append(made.pressure.settled)
    assert settled == [4, 8, 16, 32, 64, 64]


def behind_contention_the_epochs_grow_by_a_quarter() -> None:
    made = contended(n_slots=1, waiting=400)
    made.pressure.settled = 2
    sizes = [epoch(made, 1000 * number, everything).size for number in range(14)]
    assert sizes == [2, 3, 4, 6, 8, 11, 14, 18, 23, 29, 37, 47, 59, 64]


def _settled(ended: int, rounds: int) -> int:
    """The limit behind an epoch that ended so many in so many rounds."""
    made = contended(n_slots=1)
    made.pressure.contended(ended, 0, False, rounds)
    return made.pressure.settled


def a_line_of_transactions_halves_the_epoch() -> None:
    assert _settled(64, PATCH_ROUNDS_MAX) == EPOCH_MAX
    assert _settled(200, PATCH_ROUNDS_MAX + 1) == 100


def a_long_line_within_a_transaction_does_not() -> None:
    assert _settled(ROUND_TRANSACTIONS * 40, 40) == EPOCH_MAX
    assert _settled(1, 120) == EPOCH_MAX


def epochs_that_are_smaller_than_they_may_be_say_nothing() -> None:
    made = contended(n_slots=2, waiting=6)
    made.pressure.settled = 8
    made.arrive(1, arrivals(1, 60, first=6))
    made.pressure.transactions = 4
    epoch(made, 0, everything)
    assert made.pressure.settled == 8


def one_busy_slot_fills_an_epoch_by_itself() -> None:
    made = intake(3, Limits(epoch_transactions_max=EPOCH_MAX))
    settle(made)
    made.arrive(1, arrivals(1, 200))
    made.pressure.settled = 8
    for number, size in enumerate((8, 11, 14)):
        assert epoch(made, 1000 * number, everything).new == {0: 0, 1: size, 2: 0}


RULES = (
    epochs_shrink_to_what_can_end_and_all_have_their_turn,
    there_is_always_room_for_one,
    nothing_waits_where_nothing_is_carried,
    few_that_are_carried_are_no_reason_to_wait,
    what_is_idle_doubles_its_epochs,
    behind_contention_the_epochs_grow_by_a_quarter,
    epochs_that_are_smaller_than_they_may_be_say_nothing,
    a_line_of_transactions_halves_the_epoch,
    a_long_line_within_a_transaction_does_not,
    one_busy_slot_fills_an_epoch_by_itself,
)


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: Callable[[], None]) -> None:
    rule()


# Each of them broken -------------------------------------------------------------------------------------------


def _whole_batches(self: Pressure, carried: int) -> int:
    return max(0, self.transactions - carried)


def _as_many_as_ended(self: Pressure, ended: int, carried: int, idle: bool, rounds: int = 0) -> None:
    self.settled = self.transactions_max if not carried else ended + carried


def _none_at_all(self: Pressure, carried: int) -> int:
    return max(0, min(self.transactions, self.settled) - carried)


def _at_any_carried(self: Pressure, ended: int, carried: int, idle: bool, rounds: int = 0) -> None:
    self.settled = max(1, ended) if carried else self.transactions_max


def _never_grows(self: Pressure, ended: int, carried: int, idle: bool, rounds: int = 0) -> None:
    self.settled = max(1, ended // 2) if carried * CARRIED_SHARE > ended else self.settled


def _is_never_idle(self: Pressure, ended: int, carried: int, idle: bool, rounds: int = 0) -> None:
    original(self, ended, carried, False, rounds)


def _does_not_hear_of_rounds(self: Pressure, ended: int, carried: int, idle: bool, rounds: int = 0) -> None:
    original(self, ended, carried, idle)


def _halves_for_any_rounds(self: Pressure, ended: int, carried: int, idle: bool, rounds: int = 0) -> None:
    original(self, ended, carried, idle, rounds)
    if rounds > PATCH_ROUNDS_MAX:
        self.settled = max(1, ended // 2)


def _grows_unseen(self: Pressure, ended: int, carried: int, idle: bool, rounds: int = 0) -> None:
    original(self, max(ended, self.settled), carried, idle, rounds)


original = Pressure.contended

BROKEN = [
    ("room", _whole_batches, epochs_shrink_to_what_can_end_and_all_have_their_turn),
    ("contended", _as_many_as_ended, epochs_shrink_to_what_can_end_and_all_have_their_turn),
    ("room", _none_at_all, there_is_always_room_for_one),
    ("contended", _at_any_carried, few_that_are_carried_are_no_reason_to_wait),
    ("contended", _is_never_idle, what_is_idle_doubles_its_epochs),
    ("contended", _never_grows, behind_contention_the_epochs_grow_by_a_quarter),
    ("contended", _does_not_hear_of_rounds, a_line_of_transactions_halves_the_epoch),
    ("contended", _halves_for_any_rounds, a_long_line_within_a_transaction_does_not),
    ("contended", _grows_unseen, epochs_that_are_smaller_than_they_may_be_say_nothing),
]


@pytest.mark.parametrize(("name", "broken", "rule"), BROKEN, ids=[broken.__name__ for _, broken, _ in BROKEN])
def test_the_rule_fails_if_it_is_broken(
    name: str, broken: Callable[..., object], rule: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pressure, name, broken)
    with pytest.raises(AssertionError):
        rule()


# In an engine --------------------------------------------------------------------------------------------------


def test_an_engine_tells_how_many_of_each_epoch_ended_and_how_many_its_lock_phase_carried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[int, int, bool, int]] = []

    def contended(self: Pressure, ended: int, carried: int, idle: bool, rounds: int) -> None:
        told.append((ended, carried, idle, rounds))
        original(self, ended, carried, idle, rounds)

    monkeypatch.setattr(Pressure, "contended", contended)
    rng = Random(5)
    engine = EngineLoop(chaos_app)
    requests = [replace(random_request(rng, Profile(keys=1, poisoned=0)), request_id=f"r{n}") for n in range(120)]
    place = AppRouter(chaos_app, engine.n_slots).place
    engine.run([(place(each.operator, each.key)[1], encode_request(each)) for each in requests])
    assert sum(ended for ended, *_ in told) == len(engine.replies) == 120
    assert sum(carried for _, carried, *_ in told) > 0
    assert any(rounds > 1 for *_, rounds in told)
    assert told[-1][1:3] == (0, True)


@pytest.mark.parametrize(
    ("script", "limits"),
    [
        pytest.param("add 1; ask {}1 (fail now)", Limits(), id="aborts in what it calls"),
        pytest.param(
            "add 1; send {}1 (); send b1 (); send c1 (); send d1 ()", Limits(invocations_max=24), id="calls much"
        ),
    ],
)
def test_a_contended_function_that_is_carried_from_its_first_run_makes_no_epoch_smaller(
    script: str, limits: Limits
) -> None:
    """With fewer beside it, it would have been carried as well. All that shares its epochs would pay for it."""
    engine = EngineLoop(scripted_app.app, limits=limits)
    requests = [
        script_request(f"r{n}", f"k{n}0", script.format(f"k{n}"), "", scripted_app.hot.__name__)
        if n % 3 == 0
        else script_request(f"r{n}", f"k{n}0", "add 1", "")
        for n in range(600)
    ]
    engine.run([(scripted_app.slot_digit(str(each.key)), encode_request(each)) for each in requests])
    replies = [decode_reply(each) for each in engine.replies]
    assert len(replies) == 600
    carried = {reply.request_id: reply for reply in replies if int(reply.request_id[1:]) % 3 == 0}
    assert any(reply.phase != 2 for reply in carried.values()), "nothing was carried"
    # The first epochs of a generation are small: 32, 64, 128, and so on.
    assert len({reply.epoch for reply in replies}) <= 8
