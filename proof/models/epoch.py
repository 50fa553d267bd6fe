"""One epoch of the model: execution step, validation, lock-free commits, and a lock phase for what is in conflict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from proof.models.execution_step import Execution, execute
from proof.models.lock_phase import Locked, LockPhase, Result, Shape
from proof.models.part import At, Entry, Part, Sent
from proof.models.patch_rounds import Cap
from proof.models.programs import Call
from proof.models.runner import Place, State
from proof.models.serial import End


@dataclass
class Transaction:
    """A request that has a TID. `carries` counts the epochs that it has left."""

    tid: int
    root: Call
    sequential: bool = False
    carries: int = 0


class Placement(NamedTuple):
    """What may decide nothing: the number of workers, and the order in which branches and messages arrive."""

    n_workers: int
    arrival: Random


class Ended(NamedTuple):
    """A transaction that has ended, with its place in the epoch's serial order."""

    phase: int
    tid: int
    end: End


@dataclass
class EpochResult:
    """What an epoch did: `ended` in serial order. `locked` went to the lock phase, whose result is `lock`."""

    ended: list[Ended] = field(default_factory=list)
    carried: list[Transaction] = field(default_factory=list)
    locked: list[int] = field(default_factory=list)
    lock: Result | None = None


def run_epoch(
    state: State,
    batch: list[Transaction],
    shape: Shape,
    cap: Cap,
    placement: Placement,
    cuts: Mapping[int, Collection[int]],
    unlocked: Collection[int] = (),
) -> EpochResult:
    """Runs one epoch and changes `state`.

    `cuts` are TIDs that the watchdog cuts, by round of the lock phase; `unlocked` take no part in the lock phase, as in
    a replay of an epoch with cuts.
    """
    found = EpochResult()
    n_keys, calls_max, arrival = shape.n_keys, shape.calls_max, placement.arrival
    executed = {t.tid: execute(state, t.root, t.sequential, n_keys, calls_max, arrival) for t in batch}
    alive = []
    for t in sorted(batch, key=lambda t: t.tid):
        execution = executed[t.tid]
        if execution.leaves:
            t.sequential = True
            found.carried.append(t)
        elif execution.failure is not None:
            found.ended.append(Ended(0, t.tid, End(None, execution.failure.message)))
        else:
            alive.append(t)
    conflicts = _conflicts(alive, executed)
    for t in alive:
        if t.tid not in conflicts:
            state.update(executed[t.tid].writes)
            found.ended.append(Ended(1, t.tid, End(executed[t.tid].results[()], None)))
    if conflicts:
        locked = [t for t in alive if t.tid in conflicts]
        found.locked = [t.tid for t in locked]
        _lock(found, [t for t in locked if t.tid not in unlocked], executed, state, shape, cap, placement, cuts)
        found.carried.extend(t for t in locked if t.tid in unlocked)
        for t in locked:
            t.sequential |= t in found.carried and executed[t.tid].collided
    for t in found.carried:
        t.carries += 1
    return found


def _conflicts(alive: list[Transaction], executed: Mapping[int, Execution]) -> set[int]:
    written: set[int] = set()
    found = set()
    for t in alive:
        execution = executed[t.tid]
        if execution.collided or written & execution.touched:
            found.add(t.tid)
        written |= execution.writes.keys()
    return found


def _lock(
    found: EpochResult,
    locked: list[Transaction],
    executed: Mapping[int, Execution],
    state: State,
    shape: Shape,
    cap: Cap,
    placement: Placement,
    cuts: Mapping[int, Collection[int]],
) -> None:
    begin = begins({t.tid: t.root for t in locked}, executed, shape)
    phase = LockPhase(begin, state, shape, cap, placement.n_workers, placement.arrival, cuts)
    result = found.lock = phase.run()
    for t in locked:
        if t.tid in result.carried:
            found.carried.append(t)
        elif t.tid in result.failed:
            found.ended.append(Ended(2, t.tid, End(None, result.failed[t.tid])))
        else:
            found.ended.append(Ended(2, t.tid, End(result.results[t.tid], None)))


def begins(roots: Mapping[int, Call], executed: Mapping[int, Execution], shape: Shape) -> Locked:
    """What the execution step leaves to the lock phase."""
    n_slots = shape.n_slots
    parts: list[dict[int, Part]] = [{} for _ in range(n_slots)]
    growths = {}
    for tid in roots:
        execution = executed[tid]
        calls = execution.calls
        small = len(calls) <= shape.calls_max // 2
        growth = growths[tid] = shape.calls_max // (2 * n_slots) if small else 0
        made = Counter(calls[path[:-1]][1].key % n_slots for path in calls if path)
        for path, (chain, call) in calls.items():
            slot = call.key % n_slots
            part = parts[slot].setdefault(tid, Part(growth + made[slot]))
            caller = calls[path[:-1]][1].key % n_slots if path else slot
            if path and caller == slot:
                continue
            at = At(path, caller)
            part.entries[at] = Entry(chain, call)
            if path:
                parts[caller][tid].sent[path] = Sent(slot, Place(calls[path[:-1]][0], path), part.entries[at])
                if call.synchronous:
                    parts[caller][tid].results[path] = part.given[at] = execution.results[path]
    return Locked(parts, {tid: root.key % n_slots for tid, root in roots.items()}, growths)
