"""The group `workers`: what it costs that transactions cross workers, and that there are many of them.

All processes share this machine's processors, so processor time per transaction is compared, at the same rate, not
rates. The two rows of two workers have one slot for each worker, so that every transaction crosses over; eight workers
are compared with two on the slots of the options.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.pace import Machine, in_a_quiet_phase
from benchmarks.experiments.place import Place, place
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.experiments.targets.compare import compare
from benchmarks.experiments.targets.engine_alone import in_fresh_process, of_workload
from benchmarks.experiments.targets.pipeline import TOP_SHARE, WORKER
from benchmarks.experiments.targets.verdict import Verdict
from benchmarks.ycsbt.settings import Settings

TRANSACTIONS: Final = 50_000
TWO: Final = 2
EIGHT: Final = 8


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], _many_keys: int) -> None:
    """Clusters that no row needs are not started."""
    async with place(bench) as here, AsyncExitStack() as stack:
        if not verdicts.keys().isdisjoint(("two-by-engine", "two-by-one")):
            await _two_workers(bench, verdicts, here, stack)
        if "eight-by-two" in verdicts:
            slots = max(bench.common.slots, EIGHT)
            eight = await _subject(bench, here, stack, EIGHT, slots)
            await _compare_cpu(bench, verdicts["eight-by-two"], eight, await _subject(bench, here, stack, TWO, slots))


async def _two_workers(bench: Bench, verdicts: Mapping[str, Verdict], here: Place, stack: AsyncExitStack) -> None:
    two = await _subject(bench, here, stack, TWO, TWO)
    if "two-by-engine" in verdicts:
        await _by_engine(bench, verdicts["two-by-engine"], two)
    if "two-by-one" in verdicts:
        await _compare_cpu(bench, verdicts["two-by-one"], two, await _subject(bench, here, stack, 1, TWO))


async def _subject(bench: Bench, here: Place, stack: AsyncExitStack, workers: int, slots: int) -> Subject:
    name = f"{workers}-workers-{slots}-slots"
    cluster = await here.cluster(name, workers, slots=slots)
    load = Load(name, _settings(bench, slots))
    (subject,) = await stack.enter_async_context(subjects(bench, deployment_of(cluster), [load], check=cluster.check))
    return subject


def _settings(bench: Bench, slots: int) -> Settings:
    return Settings(keys=bench.common.keys, n_slots=slots, multi_partition=1.0)


async def _compare_cpu(bench: Bench, verdict: Verdict, over: Subject, under: Subject) -> None:
    """At a rate near the highest one of the slower of the two."""
    rate = TOP_SHARE * min(await over.warmed(), await under.warmed())
    await compare(bench, verdict, partial(_worker_us, over, rate), partial(_worker_us, under, rate), "µs")


async def _worker_us(subject: Subject, rate: float) -> float:
    return (await subject.at(rate)).cpu_us[WORKER]


async def _by_engine(bench: Bench, verdict: Verdict, two: Subject) -> None:
    rate, machine = TOP_SHARE * await two.warmed(), Machine()

    async def engine_us() -> float:
        alone = await in_a_quiet_phase(
            lambda: in_fresh_process(of_workload, _settings(bench, TWO), TRANSACTIONS),
            lambda alone: machine.pace(alone.calibration),
            bench.common.repeats,
            bench.say,
        )
        bench.say(f"engine in memory: {alone.engine_us:.1f} µs a transaction, {alone.locked:.0%} in conflict")
        return alone.engine_us

    await compare(bench, verdict, partial(_worker_us, two, rate), engine_us, "µs")
