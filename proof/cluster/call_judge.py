"""The judge of calls for later: what was given, made, withdrawn, ticked, expired and heard, by the events that
`proof.cluster.timed_app` has emitted and by the deliveries that the engine has recorded.

All functions are pure: events in, problems out, one sentence each. A time is that of the engine's record: the
microseconds since 1970 that the record of an epoch says its calls were due at, whatever a clock shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from proof.cluster.event_judge import Emission

EXPIRED: Final = "expired"
_NEVER_MADE: Final = "failing"
_SECOND_US: Final = 1_000_000
Call = tuple[int, int]
"""(giver, number)."""
Times = Mapping[int, int]
"""By the TID of a delivery, the time at which its epoch took what was due."""


class Delivery(NamedTuple):
    """A delivery that was answered: its place, which transaction has given the call, and what came of it."""

    epoch: int
    phase: int
    tid: int
    given_by: int
    outcome: str

    @property
    def transaction(self) -> tuple[int, int, int]:
        """Its place in the serial order."""
        return self.epoch, self.phase, self.tid


class _Call(NamedTuple):
    kind: str
    due_us: int
    given: Emission


def given_calls(given: Iterable[Emission]) -> dict[Call, Any]:
    """Each call that was given."""
    calls: dict[Call, Any] = {}
    for each in given:
        value = each.value
        for number in range(value["first"], value["first"] + value["count"]):
            calls[value["giver"], number] = _Call(value["kind"], value["due_us"], each)
    return calls


def made_problems(given: Iterable[Emission], made: Iterable[Emission]) -> list[str]:
    """Each call was made once, in a later epoch than it was given; a named one once or never, a failing one never."""
    calls, problems, times = given_calls(given), list[str](), Counter[Call]()
    for each in made:
        value = each.value
        name = value["giver"], value["number"]
        call = calls.get(name)
        times[name] += 1
        if call is None:
            problems.append(f"call {name} was made, and nobody has given it")
        elif each.epoch <= call.given.epoch:
            problems.append(f"call {name} was made in epoch {each.epoch}, and given in epoch {call.given.epoch}")
        elif call.kind != value["kind"] or (call.due_us and call.due_us != value["due_us"]):
            problems.append(f"call {name} was given as {call.kind} for {call.due_us}, and made as {value}")
    for name, call in calls.items():
        wanted = (0,) if call.kind == _NEVER_MADE else (0, 1) if call.kind == "named" else (1,)
        if times[name] not in wanted:
            problems.append(f"call {name}, {call.kind}, was made {times[name]} times")
    return problems


def early_problems(made: Iterable[Emission], taken: Times) -> list[str]:
    """No call was made before its time."""
    problems = []
    for each in made:
        value, due_us = each.value, each.value["due_us"]
        name = value["giver"], value["number"]
        taken_us = taken.get(each.tid)
        if taken_us is None:
            problems.append(f"call {name}: no epoch's record has taken transaction {each.tid}")
        elif value["kind"] not in ("commit", "shy") and taken_us < due_us:
            problems.append(f"call {name} was taken {due_us - taken_us} µs before its time")
        if value["now_us"] < due_us:
            problems.append(f"call {name} was made {due_us - value['now_us']} µs before its time")
    return problems


def giving_order_problems(made: Iterable[Emission]) -> list[str]:
    """What an entity gave another one to do after commits was done in the order in which it was given."""
    last: dict[int, int] = {}
    problems = []
    for each in _serial(made):
        who, number = each.value["giver"], each.value["number"]
        if each.value["kind"] == "commit":
            if number < last.get(who, -1):
                problems.append(f"giver {who}: call {number} was made behind call {last[who]}")
            last[who] = number
    return problems


def name_problems(given: Iterable[Emission], withdrawn: Iterable[Emission], made: Iterable[Emission]) -> list[str]:
    """Under a name stands the last call that was given, until it is made or withdrawn: one of the two happens."""
    standing: dict[tuple[int, str], int] = {}
    names = {
        (each.value["giver"], each.value["first"]): each.value["name"]
        for each in given
        if each.value["kind"] == "named"
    }
    problems = []
    for each in _serial([*given, *withdrawn, *made]):
        value, who = each.value, each.value["giver"]
        if each.event == "given":
            if value["kind"] == "named":
                standing[who, value["name"]] = value["first"]
        elif each.event == "withdrawn":
            stood = standing.pop((who, value["name"]), None)
            if (stood is not None) != value["stood"]:
                problems.append(
                    f"giver {who}: withdrawing {value['name']!r} said {value['stood']}, and {stood} stood there"
                )
        elif value["kind"] == "named":
            name = names.get((who, value["number"]), "")
            stood = standing.pop((who, name), None)
            if stood != value["number"]:
                problems.append(f"giver {who}: call {value['number']} was made under {name!r}, where {stood} stood")
    return problems + [
        f"giver {who}: call {number} under {name!r} was not made" for (who, name), number in standing.items()
    ]


def dead_problems(given: Iterable[Emission], dead: Iterable[Call]) -> list[str]:
    """Exactly the calls that always fail are kept among the dead ones, each once."""
    wanted = Counter(name for name, call in given_calls(given).items() if call.kind == _NEVER_MADE)
    found = Counter(dead)
    return [f"call {name} failed for good, and is no dead call" for name in sorted(wanted - found)] + [
        f"call {name} is a dead call, which it should not be" for name in sorted(found - wanted)
    ]


# Crons and lives -------------------------------------------------------------------------------------------


def tick_problems(ticks: Iterable[Emission], taken: Times) -> list[str]:
    """The ticks of a clock have all numbers, are of whole seconds that ascend, and none is before its time."""
    by_clock: dict[int, list[Emission]] = defaultdict(list)
    for each in _serial(ticks):
        by_clock[each.value["clock"]].append(each)
    problems = []
    for clock, seen in by_clock.items():
        numbers = [each.value["number"] for each in seen]
        if numbers != list(range(1, len(seen) + 1)):
            problems.append(f"clock {clock}: its {len(seen)} ticks have other numbers than 1, 2, 3 …")
        for first, second in pairwise(seen):
            if first.value["tick_us"] >= second.value["tick_us"]:
                problems.append(f"clock {clock}: tick {second.value} came behind {first.value}")
        for each in seen:
            tick_us, taken_us = each.value["tick_us"], taken.get(each.tid, 0)
            if tick_us % _SECOND_US or taken_us < tick_us:
                problems.append(f"clock {clock}: the tick of {tick_us} was taken at {taken_us}")
    return problems


def life_problems(lived: Iterable[Emission], ends: Iterable[Delivery], taken: Times, life_us: int) -> list[str]:
    """What was not written for its time is deleted once, not before that time; what was written is not deleted."""
    ended: dict[int, list[Delivery]] = defaultdict(list)
    for end in ends:
        ended[end.given_by].append(end)
    written: dict[tuple[str, int], list[Emission]] = defaultdict(list)
    for each in _serial(lived):
        written[each.value["what"], each.value["key"]].append(each)
    problems = []
    for name, writes in written.items():
        for write, following in zip(writes, [*writes[1:], None], strict=True):
            problems += [
                f"{name}: {told}" for told in _life(write, following, ended.pop(write.tid, []), taken, life_us)
            ]
    return problems + [f"transaction {tid} has written nothing that expired" for tid in ended]


def _life(
    write: Emission, following: Emission | None, ends: list[Delivery], taken: Times, life_us: int
) -> Iterable[str]:
    now_us = write.value["now_us"]
    before_us = 0 if following is None else following.value["before_us"]
    if before_us not in (0, now_us):
        yield f"what was written at {now_us} was found as of {before_us}"
    if len(ends) != (not before_us):
        yield f"what was written at {now_us} was deleted {len(ends)} times before {before_us or 'nothing'} was found"
    for end in ends:
        if taken.get(end.tid, 0) < now_us + life_us:
            yield f"what was written at {now_us} was deleted at {taken.get(end.tid, 0)}, before its time"
        if following is not None and not write.transaction < end.transaction < following.transaction:
            yield f"what was written at {now_us} was deleted at another place than between the two writes"


# Subscriptions ---------------------------------------------------------------------------------------------


def note_problems(moved: Iterable[Emission], noted: Iterable[Emission], how: str, groups: int) -> list[str]:
    """Each transfer is noted once in a later epoch, those of one account or group in their order. In one epoch those
    alone that one transaction notes together: the next delivery of a lane waits for the end of the one before.
    """
    wanted: dict[int, list[tuple[int, int]]] = defaultdict(list)
    epochs: dict[tuple[int, int], int] = {}
    for each in sorted(moved, key=lambda each: each.place):
        account, number = each.value["account"], each.value["number"]
        wanted[account if how == "source" else account % groups].append((account, number))
        epochs[account, number] = each.epoch
    found: dict[int, list[Emission]] = defaultdict(list)
    for each in _serial(noted):
        if each.value["how"] == how:
            found[each.value["group"]].append(each)
    problems = []
    for group in sorted(wanted.keys() | found.keys()):
        seen = [(each.value["account"], each.value["number"]) for each in found[group]]
        if seen != wanted[group]:
            problems.append(
                f"by {how}, {group} has {len(wanted[group])} transfers, and {len(seen)} were noted, or in another order"
            )
        if any(_at_once(first, second) for first, second in pairwise(found[group])):
            problems.append(f"by {how}, {group}: two transactions have noted in one epoch")
        if any(each.epoch <= epochs.get(name, -1) for each, name in zip(found[group], seen, strict=True)):
            problems.append(f"by {how}, {group}: one was noted before it happened")
    return problems


def _at_once(first: Emission, second: Emission) -> bool:
    return first.epoch >= second.epoch and first.transaction != second.transaction


def _serial(events: Iterable[Emission]) -> list[Emission]:
    """In serial order; the events of a transaction in order of their ids."""
    return sorted(events, key=lambda each: (each.transaction, each.id))
