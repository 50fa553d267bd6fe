"""The verdict on a run of `proof.cluster.events_and_time`: all judges together, and the figures of what they judged."""

from __future__ import annotations

import gc
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from proof.cluster.call_judge import (
    EXPIRED,
    Times,
    dead_problems,
    early_problems,
    giving_order_problems,
    life_problems,
    made_problems,
    name_problems,
    note_problems,
    tick_problems,
)
from proof.cluster.event_judge import (
    Content,
    Cut,
    Emission,
    Sums,
    Topics,
    cut_problems,
    emitted_problems,
    mark_problems,
    number_problems,
    order_problems,
    paired_problems,
    parsed,
)
from proof.cluster.plain_reader import Read
from proof.cluster.timed_app import CLOCKS, GROUPS, LIFE
from proof.cluster.timed_records import (
    Recorded,
    Snapshots,
    check_serial,
    dead_calls,
    emissions_of,
    ends_of_lives,
    looks,
    taken_at,
    waiting_calls,
)
from styx.model.app import App


class Verdict(NamedTuple):
    """`problems` is empty if every promise was kept. `counts` are the things that were judged, by name."""

    problems: list[str]
    figures: list[str]
    counts: dict[str, int]


def verdict(app: App, recorded: Recorded, read: Read, snapshots: Snapshots, told: int) -> Verdict:
    """Judges everything; `told` replies were given to clients, and are among the recorded ones. Raises
    `SerializabilityViolation` if no serial execution gives the replies and the state.
    """
    collects = gc.isenabled()
    gc.disable()  # it would go through millions of records again and again, and find nothing
    try:
        return _verdict(app, recorded, read, snapshots, told)
    finally:
        if collects:
            gc.enable()


def _verdict(app: App, recorded: Recorded, read: Read, snapshots: Snapshots, told: int) -> Verdict:
    began_s = time.monotonic()
    history = check_serial(app, recorded)
    serial_s = time.monotonic() - began_s
    topics = parsed(read.records)
    taken = taken_at(recorded.entries, recorded.n_slots)
    sums = Sums(topics, "moved", "hopped")
    of_snapshots, of_looks = snapshots.cuts(recorded.entries), looks(recorded)
    problems = [
        *event_problems(topics, emissions_of(app, history.emitted)),
        *cut_problems(sums, [*of_snapshots, *of_looks]),
        *time_problems(topics, recorded, taken),
    ]
    made, ticks = topics.events("made"), topics.events("ticked")
    bursts = _bursts(made)
    counts = {
        "requests": len(recorded.requests),
        "replies told": told,
        "events": sum(not isinstance(each, int) for content in _contents(topics) for each in content),
        "marks": sum(isinstance(each, int) for content in _contents(topics) for each in content),
        "snapshots": sum(cut.epoch <= sums.last_mark for cut in of_snapshots),
        "looks": sum(cut.epoch <= sums.last_mark for cut in of_looks),
        "looks at a mark": _at_marks(topics, of_looks),
        "made": len(made),
        "due at one moment": max(map(len, bursts.values()), default=0),
        "dead": len(dead_calls(recorded.state)),
        "withdrawn": sum(each.value["stood"] for each in topics.events("withdrawn")),
        "ticks": len(ticks),
        "ends of lives": len(ends_of_lives(recorded.deliveries, EXPIRED)),
        "noted": len(topics.events("noted")),
        "read uncommitted": len(read.stuck),
    }
    figures = [
        f"serial execution agrees on {history.committed:,} commits and {history.aborted:,} aborts ({serial_s:.0f} s)",
        ", ".join(f"{name} {number:,}" for name, number in counts.items()),
        f"made by kind: {dict(Counter(each.value['kind'] for each in made))}",
        *_burst_lines(bursts),
        *([f"read uncommitted, since the broker lost the end of a commit: {', '.join(read.stuck)}"] * bool(read.stuck)),
    ]
    return Verdict(problems, figures, counts)


def event_problems(topics: Topics, expected: list[Emission]) -> list[str]:
    """What is wrong with the topics by themselves, and as the outcome of a serial execution."""
    return [
        *topics.problems,
        *order_problems(topics),
        *mark_problems(topics),
        *emitted_problems(topics, expected),
        *number_problems(topics.events("moved", "hopped")),
        *paired_problems(topics.events("settled"), topics.events("tallied")),
        *note_problems(topics.events("moved"), topics.events("noted"), "source", GROUPS),
        *note_problems(topics.events("moved"), topics.events("noted"), "group", GROUPS),
    ]


def time_problems(topics: Topics, recorded: Recorded, taken: Times) -> list[str]:
    """What is wrong with calls for later, crons and lives."""
    given, made = topics.events("given"), topics.events("made")
    waiting = waiting_calls(recorded.state)
    ends = ends_of_lives(recorded.deliveries, EXPIRED)
    return [
        *made_problems(given, made),
        *early_problems(made, taken),
        *giving_order_problems(made),
        *name_problems(given, topics.events("withdrawn"), made),
        *dead_problems(given, dead_calls(recorded.state)),
        *tick_problems(topics.events("ticked"), taken),
        *life_problems(topics.events("lived"), ends, taken, LIFE.seconds * 1_000_000),
        *([f"calls still wait: {waiting}"] if sum(waiting.values()) != CLOCKS else []),
    ]


def _contents(topics: Topics) -> Iterator[Content]:
    for parts in topics.content.values():
        yield from parts.values()


def _at_marks(topics: Topics, cuts: list[Cut]) -> int:
    """How many cuts are at the epoch of a mark itself."""
    marks = {each for content in _contents(topics) for each in content if isinstance(each, int)}
    return sum(cut.epoch in marks for cut in cuts)


def _bursts(made: list[Emission]) -> dict[int, list[int]]:
    """By the moment at which calls of bursts were due, the epoch in which each was made."""
    by_due: dict[int, list[int]] = defaultdict(list)
    for each in made:
        if each.value["kind"] == "burst":
            by_due[each.value["due_us"]].append(each.epoch)
    return by_due


def _burst_lines(bursts: dict[int, list[int]]) -> Iterator[str]:
    for epochs in bursts.values():
        yield f"{len(epochs):,} calls were due at one moment, and made in {len(set(epochs)):,} epochs"
