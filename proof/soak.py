"""Many simulated seeds, over all processor cores: `python -m proof.soak --seeds 20000`.

Prints the number of runs, the faults by kind, the transactions checked, and every failed seed with its plan. The exit
status is 1 if a seed failed; such a seed belongs into the project's list of regression seeds. With `--kinds` no seed
has faults: functions of all kinds occur in each, and each log is replayed on 1, 2, 3 and 8 workers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec

from proof.elsewhere import KINDS, compare_elsewhere, compare_kinds, kinds_of
from proof.simulation import SimulationFailure, SimulationPlan, SimulationReport, random_plan, simulate

CHUNK_SEEDS = 20
ELSEWHERE_EVERY = 20
"""One seed in this number is also replayed from its log on other numbers of workers."""


class Tally(msgspec.Struct):
    """The sums over a number of seeds; `failures` are the messages of failed seeds."""

    seeds: int = 0
    transactions: int = 0
    committed: int = 0
    aborted: int = 0
    repetitions: int = 0
    epochs: int = 0
    generations: int = 0
    snapshots: int = 0
    replays_elsewhere: int = 0
    cut: int = 0
    unlocked: int = 0
    local: int = 0
    left: int = 0
    read_only: int = 0
    outside: int = 0
    listings: int = 0
    violations: int = 0
    ticks: int = 0
    landed: Counter[str] = msgspec.field(default_factory=Counter)
    deployments: Counter[str] = msgspec.field(default_factory=Counter)
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    struck: Counter[str] = msgspec.field(default_factory=Counter)
    kinds: Counter[str] = msgspec.field(default_factory=Counter)
    failures: list[str] = msgspec.field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Sums two tallies."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add_report(self, report: SimulationReport) -> None:
        """Adds what one seed did."""
        self.transactions += report.history.transactions
        self.committed += report.history.committed
        self.aborted += report.history.aborted
        self.repetitions += report.history.repetitions
        self.epochs += report.epochs
        self.generations += report.generations
        self.snapshots += report.snapshots
        self.cut += report.cut_replies
        self.unlocked += report.unlocked
        self.local += report.local
        self.left += report.left
        self.read_only += report.read_only
        self.outside += report.outside
        self.listings += report.listings
        self.violations += report.violations
        self.ticks += report.ticks
        self.landed.update(report.landed)
        self.deployments.update(report.deployments)
        self.faults.update(report.faults)
        self.struck.update(report.struck)


def plan_of(seed: int) -> SimulationPlan:
    """The plan of a seed. Every other seed simulates a cluster."""
    return random_plan(seed, cluster=seed % 2 == 1)


def run_seeds(seeds: Iterable[int]) -> Tally:
    """Simulates each seed in this process."""
    tally = Tally()
    for seed in seeds:
        elsewhere = seed % ELSEWHERE_EVERY == 0
        tally.seeds += 1
        try:
            report = simulate(plan_of(seed))
            if elsewhere:
                compare_elsewhere(seed, arrival=seed)
                tally.replays_elsewhere += 1
        except SimulationFailure as failure:
            tally.failures.append(str(failure))
            continue
        tally.add_report(report)
    return tally


def run_kinds(seeds: Iterable[int]) -> Tally:
    """Simulates each seed in this process with functions of all kinds, and replays it on other numbers of workers."""
    tally = Tally()
    for seed in seeds:
        tally.seeds += 1
        try:
            report = compare_kinds(seed)
        except SimulationFailure as failure:
            tally.failures.append(str(failure))
            continue
        tally.replays_elsewhere += 1
        tally.add_report(report)
        tally.kinds.update(kinds_of(report))
    return tally


def run_parallel(seeds: range, jobs: int, run: Callable[[Iterable[int]], Tally] = run_seeds) -> Iterator[Tally]:
    """Tallies of consecutive chunks of `seeds`, as they are done."""
    chunks = [seeds[i : i + CHUNK_SEEDS] for i in range(0, len(seeds), CHUNK_SEEDS)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run, chunks)


def describe(tally: Tally) -> str:
    """The tally as lines for a person."""
    faults = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.faults.items()))
    struck = ", ".join(f"{count} {stage}" for stage, count in sorted(tally.struck.items()))
    kinds = ", ".join(f"{tally.kinds[kind]} {kind}" for kind in KINDS)
    deployments = ", ".join(f"{count} {what}" for what, count in sorted(tally.deployments.items()))
    landed = ", ".join(f"{count} {what}" for what, count in sorted(tally.landed.items()))
    return (
        f"{tally.seeds} seeds, {tally.transactions} transactions checked against serial replay "
        f"({tally.committed} committed, {tally.aborted} aborted), {tally.repetitions} idempotent repetitions, "
        f"{tally.epochs} epochs, {tally.generations} generations, {tally.snapshots} snapshots, "
        f"{tally.replays_elsewhere} logs replayed on other numbers of workers, {tally.cut} transactions ended by the "
        f"watchdog and {tally.unlocked} taken out of a lock phase, {tally.read_only} committed in phase 0, "
        f"{tally.outside} reads outside the log, {tally.listings} of them listings, "
        f"{tally.violations} ended because a read-only function would have written, {tally.local} ended in phase 3 and "
        f"{tally.left} left it; {tally.ticks} ticks of crons\n"
        + (f"kinds: {kinds}\n" if tally.kinds else "")
        + f"foreign records: {landed or 'none'}\n"
        f"versions: {deployments or 'none'}\n"
        f"faults: {faults or 'none'}\n"
        f"of them amid a rollout, by its stage: {struck or 'none'}\n"
        f"{len(tally.failures)} failed"
    )


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.soak", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000, help="how many seeds (default 20000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--kinds", action="store_true", help="functions of all kinds, each seed replayed elsewhere")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    total, shown = Tally(), 0.0
    seeds = range(options.first, options.first + options.seeds)
    for tally in run_parallel(seeds, options.jobs, run_kinds if options.kinds else run_seeds):
        total.add(tally)
        for failure in tally.failures:
            print(failure, flush=True)
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"… {total.seeds} of {options.seeds} seeds, {len(total.failures)} failed", flush=True)
    print(describe(total))
    print(f"{time.monotonic() - started:.0f} s on {options.jobs} processes")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
