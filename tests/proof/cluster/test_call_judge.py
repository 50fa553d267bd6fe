"""The judge of calls for later finds what it is there to find: each planted fault, in histories made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from proof.cluster.call_judge import (
    EXPIRED,
    Delivery,
    dead_problems,
    early_problems,
    giving_order_problems,
    life_problems,
    made_problems,
    name_problems,
    note_problems,
    tick_problems,
)
from proof.cluster.event_judge import Emission

SECOND = 1_000_000


def event(kind: str, epoch: int, tid: int, at: int = 0, /, **value: Any) -> Emission:
    return Emission(kind, 0, f"{epoch:04d}.{tid:04d}.{at}", epoch, 1, tid, 1, 0, "x", 1, value)


def given(epoch: int, first: int, kind: str, due_us: int = 0, count: int = 1, name: str = "") -> Emission:
    said = {"giver": 1, "kind": kind, "first": first, "count": count, "due_us": due_us, "name": name}
    return event("given", epoch, 1_000 + epoch, **said)


def made(epoch: int, number: int, kind: str, due_us: int = 0, now_us: int = 0) -> Emission:
    said = {"giver": 1, "number": number, "kind": kind, "due_us": due_us, "now_us": now_us or due_us}
    return event("made", epoch, 10 * epoch + number, **said)


def withdrawn(epoch: int, name: str, stood: bool) -> Emission:
    return event("withdrawn", epoch, 2_000 + epoch, giver=1, name=name, stood=stood)


# Calls -----------------------------------------------------------------------------------------------------

GIVEN = [
    given(1, 0, "commit", count=2),
    given(1, 2, "timer", 5 * SECOND),
    given(2, 3, "failing"),
    given(2, 4, "named", 9 * SECOND, name="a"),
]
MADE = [made(2, 0, "commit"), made(3, 1, "commit"), made(4, 2, "timer", 5 * SECOND)]


def test_calls_that_are_made_once() -> None:
    assert made_problems(GIVEN, MADE) == []
    assert made_problems(GIVEN, [*MADE, made(9, 4, "named", 9 * SECOND)]) == []


@pytest.mark.parametrize(
    "calls",
    [
        MADE[:2],
        [*MADE, made(5, 2, "timer", 5 * SECOND)],
        [*MADE, made(5, 3, "failing")],
        [*MADE, made(5, 77, "commit")],
        [made(1, 0, "commit"), *MADE[1:]],
        [*MADE[:2], made(4, 2, "timer", 6 * SECOND)],
        [*MADE[:2], made(4, 2, "commit")],
        [*MADE, made(9, 4, "named", 9 * SECOND), made(10, 4, "named", 9 * SECOND)],
    ],
)
def test_a_call_that_is_lost_or_made_twice_or_otherwise_is_found(calls: list[Emission]) -> None:
    assert len(made_problems(GIVEN, calls)) == 1


def test_a_timer_that_comes_early_is_found() -> None:
    timer = made(4, 2, "timer", 5 * SECOND)
    assert early_problems([timer], {timer.tid: 5 * SECOND}) == []
    # By the record of the epoch, though the function saw the right time.
    assert len(early_problems([timer], {timer.tid: 5 * SECOND - 1})) == 1
    early = made(4, 2, "timer", 5 * SECOND, 5 * SECOND - 1)
    assert len(early_problems([early], {early.tid: 5 * SECOND})) == 1
    assert len(early_problems([timer], {})) == 1


def test_a_shy_call_is_made_when_it_may_be() -> None:
    shy = made(4, 2, "shy", 5 * SECOND)
    assert early_problems([shy], {shy.tid: 1}) == []
    assert len(early_problems([made(4, 2, "shy", 5 * SECOND, SECOND)], {shy.tid: 1})) == 1


def test_calls_after_commits_that_overtake_are_found() -> None:
    assert giving_order_problems(MADE) == []
    assert len(giving_order_problems([made(3, 0, "commit"), made(2, 1, "commit")])) == 1


NAMED = [given(1, 0, "named", 9, name="a"), given(3, 1, "named", 9, name="a"), given(5, 2, "named", 9, name="a")]


@pytest.mark.parametrize(
    ("then", "problems"),
    [
        ([made(2, 0, "named"), made(4, 1, "named"), made(6, 2, "named")], 0),
        ([withdrawn(2, "a", True), made(4, 1, "named"), withdrawn(6, "a", True), withdrawn(7, "a", False)], 0),
        ([made(6, 2, "named")], 0),  # it has taken the place of the others
        ([made(4, 1, "named")], 1),  # the last one is lost
        ([made(4, 0, "named"), made(6, 2, "named")], 1),  # another one stood there
        ([withdrawn(2, "a", True), made(4, 0, "named"), made(6, 2, "named")], 1),
        ([withdrawn(6, "a", True), made(7, 2, "named")], 1),  # withdrawn, and made all the same
        ([made(6, 2, "named"), withdrawn(7, "a", True)], 1),
        ([withdrawn(6, "a", False)], 1),
    ],
)
def test_one_of_two_happens_to_a_call_under_a_name(then: list[Emission], problems: int) -> None:
    calls = [each for each in then if each.event == "made"]
    assert len(name_problems(NAMED, [each for each in then if each.event == "withdrawn"], calls)) == problems


def test_dead_calls_are_those_that_fail() -> None:
    assert dead_problems(GIVEN, [(1, 3)]) == []
    assert [len(dead_problems(GIVEN, dead)) for dead in ([], [(1, 3), (1, 3)], [(1, 3), (1, 0)])] == [1, 1, 1]


# Crons and lives -------------------------------------------------------------------------------------------


def tick(number: int, second: int) -> Emission:
    return event("ticked", number + 1, number, clock=0, number=number, tick_us=second * SECOND)


TICKS = [tick(1, 10), tick(2, 11), tick(3, 15)]
TAKEN = {1: 10 * SECOND, 2: 11 * SECOND + 5, 3: 16 * SECOND}


def test_ticks_once_each_and_not_before_their_time() -> None:
    assert tick_problems(TICKS, TAKEN) == []
    for ticks in (
        [TICKS[0], TICKS[2]],
        [*TICKS, TICKS[2]._replace(epoch=9)],
        [TICKS[0], tick(2, 10), TICKS[2]],
        [*TICKS[:2], TICKS[2]._replace(value={"clock": 0, "number": 3, "tick_us": 15 * SECOND + 1})],
    ):
        assert tick_problems(ticks, TAKEN)
    assert len(tick_problems(TICKS, {**TAKEN, 2: 11 * SECOND - 1})) == 1


def write(epoch: int, tid: int, before: int, now: int) -> Emission:
    return event("lived", epoch, tid, what="value", key=1, before_us=before * SECOND, now_us=now * SECOND)


WRITES = [write(1, 1, 0, 10), write(2, 2, 10, 11), write(5, 3, 0, 20)]
ENDS = [Delivery(4, 1, 50, 2, EXPIRED), Delivery(8, 1, 60, 3, EXPIRED)]
ENDED = {50: 13 * SECOND, 60: 22 * SECOND}


def test_lives_end_once_and_not_before_their_time() -> None:
    assert life_problems(WRITES, ENDS, ENDED, 2 * SECOND) == []


@pytest.mark.parametrize(
    ("writes", "ends", "ended"),
    [
        (WRITES, ENDS[:1], ENDED),  # not deleted in the end
        (WRITES, ENDS[1:], ENDED),  # gone, and nobody has deleted it
        (WRITES, [*ENDS, Delivery(9, 1, 60, 3, EXPIRED)], ENDED),
        (WRITES, [*ENDS, Delivery(3, 1, 50, 1, EXPIRED)], ENDED),  # deleted though it was written again
        (WRITES, [*ENDS, Delivery(3, 1, 50, 99, EXPIRED)], ENDED),
        (WRITES, ENDS, {**ENDED, 50: 13 * SECOND - 1}),
        (WRITES, [Delivery(6, 1, 50, 2, EXPIRED), ENDS[1]], ENDED),
        ([WRITES[0], write(2, 2, 9, 11), WRITES[2]], ENDS, ENDED),
    ],
)
def test_a_life_that_ends_otherwise_is_found(
    writes: list[Emission], ends: list[Delivery], ended: dict[int, int]
) -> None:
    assert life_problems(writes, ends, ended, 2 * SECOND)


# Subscriptions ---------------------------------------------------------------------------------------------


def moved(epoch: int, account: int, number: int) -> Emission:
    return event("moved", epoch, epoch, number, account=account, number=number)


def noted(epoch: int, account: int, number: int, how: str = "group") -> Emission:
    group = account if how == "source" else account % 2
    return event("noted", epoch, epoch, how=how, group=group, account=account, number=number)


MOVED = [moved(1, 1, 1), moved(1, 3, 1), moved(3, 1, 2), moved(4, 2, 1)]
NOTED = [noted(2, 1, 1), noted(3, 3, 1), noted(5, 1, 2), noted(6, 2, 1)]


def test_notes_once_each_in_the_order_of_their_group() -> None:
    assert note_problems(MOVED, NOTED, "group", 2) == []
    together = [noted(3, 1, 1)._replace(id="0003.0003.0"), noted(3, 3, 1)._replace(id="0003.0003.1"), *NOTED[2:]]
    assert note_problems(MOVED, together, "group", 2) == []
    by_source = [noted(2, 1, 1, "source"), noted(4, 3, 1, "source"), noted(5, 1, 2, "source"), noted(6, 2, 1, "source")]
    assert note_problems(MOVED, by_source, "source", 2) == []


@pytest.mark.parametrize(
    "notes",
    [
        NOTED[:3],
        [*NOTED, noted(8, 2, 1)],
        [noted(2, 3, 1), noted(3, 1, 1), *NOTED[2:]],
        [noted(3, 1, 1), noted(3, 3, 1)._replace(tid=4), *NOTED[2:]],  # two transactions in one epoch
        [noted(3, 3, 1)._replace(id="0"), noted(3, 1, 1), *NOTED[2:]],  # together, but in another order
        [*NOTED[:3], noted(4, 2, 1)],  # in the epoch in which it happened
    ],
)
def test_a_note_too_many_too_few_or_out_of_order_is_found(notes: list[Emission]) -> None:
    assert note_problems(MOVED, notes, "group", 2)
