"""Where a difference began: the first transaction that two traces of the same epochs do not agree on.

Whatever comes behind it may differ because of it. A function that is not deterministic shows there as a rule, because
the two replays ran in processes with other hashes, at other times, and on other numbers of workers.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Final, TypeVar

from styx.audit.trace import Answer, TracedEpoch, Write, traced
from styx.audit.verdict import Origin, StateDifference

WRITERS_TOLD_MAX: Final = 10


def first_difference(one: Path, other: Path, how: str) -> Origin | None:
    """None if the traces agree, as far as both go."""
    for mine, theirs in zip_longest(traced(one), traced(other)):
        if mine is None or theirs is None:
            return None
        found = _in_epoch(mine, theirs, how)
        if found is not None:
            return found
    return None


def _in_epoch(mine: TracedEpoch, theirs: TracedEpoch, how: str) -> Origin | None:
    answers = _unlike(_by_sequence(mine.answers), _by_sequence(theirs.answers))
    writes = _unlike(_by_entity(mine.writes), _by_entity(theirs.writes))
    places = [*((each.phase, each.tid) for each in answers), *((each.phase, each.tid) for each in writes)]
    if not places:
        return None
    first = min(places)
    functions = {name for each in writes if (each.phase, each.tid) == first for name in each.functions}
    if not functions:
        functions = {each.function for each in answers if (each.phase, each.tid) == first and each.function}
    return Origin(epoch=mine.epoch, phase=first[0], tid=first[1], functions=sorted(functions), how=how)


def _by_sequence(answers: list[Answer]) -> dict[object, Answer]:
    return {each.sequence: each for each in answers}


def _by_entity(writes: list[Write]) -> dict[object, Write]:
    return {(each.entity, each.phase, each.tid): each for each in writes}


T = TypeVar("T", Answer, Write)


def _unlike(mine: dict[object, T], theirs: dict[object, T]) -> list[T]:
    """What only one has, or both with another digest: then the first one's."""
    found: list[T] = []
    for key in {**mine, **theirs}:
        one, other = mine.get(key), theirs.get(key)
        if one is None or other is None:
            found += [each for each in (one, other) if each is not None]
        elif one.digest != other.digest:
            found.append(one)
    return found


def writers(trace: Path, differing: list[StateDifference]) -> list[str]:
    """The functions that wrote the entries that differ, each with its last write, in the order of these."""
    wanted = {(each.slot, each.table, each.key) for each in differing}
    last: dict[str, tuple[int, int]] = {}
    for epoch in traced(trace):
        for write in epoch.writes:
            if write.entity in wanted:
                for name in write.functions:
                    last.pop(name, None)
                    last[name] = epoch.epoch, write.tid
    named = [f"{name} (last in epoch {epoch}, transaction {tid})" for name, (epoch, tid) in last.items()]
    return named[-WRITERS_TOLD_MAX:]
