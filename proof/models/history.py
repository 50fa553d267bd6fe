"""Random histories of the model, each compared with serial execution, and with itself on other numbers of workers.

`python -m proof.models.history --seeds 2000` prints what the histories reached, and the first seed that fails.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, NamedTuple

from proof.models.epoch import Ended, EpochResult, Placement, Transaction, run_epoch
from proof.models.lock_phase import Shape
from proof.models.patch_rounds import Cap
from proof.models.programs import Call, random_program
from proof.models.runner import State
from proof.models.serial import run_serially

EPOCHS: Final = 4
"""Epochs that take new requests."""
EPOCHS_MAX: Final = 400
"""No history may need more."""
WORKERS: Final = (1, 2, 3, 8)


class Difference(Exception):
    """The model contradicts serial execution, or itself."""


class Plan(NamedTuple):
    """One random history. `cutting` is the share of epochs with a cut."""

    seed: int
    shape: Shape
    cap: Cap
    batches: list[list[Call]]
    state: State
    cutting: float


@dataclass
class Tally:
    """What histories did: transactions by how they ended, and lock phases by rounds and patched rounds."""

    ends: Counter[str] = field(default_factory=Counter)
    rounds: Counter[int] = field(default_factory=Counter)
    patched: Counter[int] = field(default_factory=Counter)
    carries: Counter[int] = field(default_factory=Counter)


class History(NamedTuple):
    """What one run of a plan gave: all ends by epoch, and the state."""

    epochs: list[list[Ended]]
    state: State


def random_plan(seed: int) -> Plan:
    """The plan of a seed."""
    rng = Random(seed)
    n_keys = rng.choice((4, 8, 20, 60))
    shape = Shape(rng.choice((1, 2, 3, 4, 8)), n_keys, rng.choice((6, 12, 24, 200)))
    cap = rng.choice((Cap(), Cap(), Cap(1, 1, 1), Cap(2, 1, 3), Cap(4, 2, 1)))
    raising = rng.choice((0.0, 0.05, 0.3))
    depth, numbered = rng.choice((1, 2, 3)), rng.choice((0.0, 0.0, 0.5))
    batches: list[list[Call]] = []
    for size in (rng.choice((2, 4, 8, 16)) for _ in range(EPOCHS)):
        batches.append([])
        for _ in range(size):
            key, program = rng.randrange(n_keys), random_program(rng, n_keys, depth, raising)
            if rng.random() < numbered:  # a number that all of them count travels on
                key, program = 0, (("add", 1), ("call", rng.choice(("sync", "async")), ("by", 0), program))
            batches[-1].append(Call(key, program, 0, 0, False))
    state = {key: rng.randrange(60) for key in range(n_keys)}
    return Plan(seed, shape, cap, batches, state, rng.choice((0.0, 0.0, 0.3)))


def run(plan: Plan, n_workers: int, arrival_seed: int, tally: Tally | None = None) -> History:
    """Runs a plan and checks it against serial execution. Raises `Difference`."""
    placement = Placement(n_workers, Random(f"{plan.seed}/{arrival_seed}"))
    watchdog = Random(plan.seed)
    state, serial = dict(plan.state), dict(plan.state)
    pending: list[Transaction] = []
    epochs: list[list[Ended]] = []
    tid = 0
    while len(epochs) < len(plan.batches) or pending:
        if len(epochs) == EPOCHS_MAX:
            raise Difference(f"seed {plan.seed}: {len(pending)} transactions do not end")
        new = plan.batches[len(epochs)] if len(epochs) < len(plan.batches) else []
        batch = pending + [Transaction(tid + index, root) for index, root in enumerate(new)]
        tid += len(new)
        roots = {t.tid: t.root for t in batch}
        cuts = _cuts(plan, watchdog, sorted(roots))
        before = dict(state), [replace(t) for t in batch]
        result = run_epoch(state, batch, plan.shape, plan.cap, placement, cuts)
        if result.lock is not None and result.lock.cut:
            replayed = run_epoch(*before, plan.shape, plan.cap, placement, {}, unlocked=result.lock.cut)
            if before[0] != state or (replayed.ended, _tids(replayed)) != (result.ended, _tids(result)):
                raise Difference(f"seed {plan.seed} epoch {len(epochs)}: a replay without the cut transactions differs")
        _compare(plan, len(epochs), result, roots, state, serial)
        pending = result.carried
        epochs.append(result.ended)
        if tally is not None:
            _add(tally, result)
    return History(epochs, state)


def _tids(result: EpochResult) -> set[tuple[int, bool]]:
    return {(t.tid, t.sequential) for t in result.carried}


def _cuts(plan: Plan, watchdog: Random, tids: list[int]) -> dict[int, list[int]]:
    if watchdog.random() >= plan.cutting:
        return {}
    return {number: [watchdog.choice(tids)] for number in (1, watchdog.choice((2, 3)))}


def _compare(plan: Plan, epoch: int, result: EpochResult, roots: dict[int, Call], state: State, serial: State) -> None:
    for phase, tid, end in result.ended:
        expected = run_serially(serial, roots[tid], plan.shape.n_keys, plan.shape.calls_max)
        if end != expected:
            where = f"seed {plan.seed} epoch {epoch} phase {phase} tid {tid}"
            raise Difference(f"{where}: {end}, serially {expected}")
    if state != serial:
        raise Difference(f"seed {plan.seed} epoch {epoch}: the state differs from serial execution")


def _add(tally: Tally, result: EpochResult) -> None:
    for phase, _, end in result.ended:
        tally.ends[f"phase {phase} {'committed' if end.message is None else 'aborted'}"] += 1
    for t in result.carried:
        tally.carries[t.carries] += 1
    if result.lock is not None:
        tally.rounds[result.lock.rounds] += 1
        tally.patched[result.lock.patched_rounds] += 1
        tally.ends["cut"] += len(result.lock.cut)


def check(plan: Plan, tally: Tally | None = None) -> None:
    """Checks one history on all numbers of workers, each with another order of arrival. Raises `Difference`."""
    first = run(plan, WORKERS[0], 0, tally)
    for arrival, n_workers in enumerate(WORKERS[1:], start=1):
        if run(plan, n_workers, arrival) != first:
            raise Difference(f"seed {plan.seed}: on {n_workers} workers another history than on one")


def check_all(seeds: Iterable[int]) -> tuple[Tally, list[str]]:
    """Checks many seeds. Returns what they reached, and the messages of those that failed."""
    tally, failures = Tally(), []
    for seed in seeds:
        try:
            check(random_plan(seed), tally)
        except Difference as difference:
            failures.append(str(difference))
    return tally, failures


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.models.history", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_000, help="how many seeds (default 2000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    options = parser.parse_args(arguments)
    tally, failures = check_all(range(options.first, options.first + options.seeds))
    for what in ("ends", "rounds", "patched", "carries"):
        print(what, dict(sorted(getattr(tally, what).items())))
    print(*failures, f"{len(failures)} of {options.seeds} seeds failed", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
