"""The group `workers`: the cost of transactions that cross workers, and of many workers.

All processes share this machine's processors, so processor time per transaction is compared at the same rate, instead
of rates. Clusters have as many slots as the larger cluster of a comparison has workers: with one slot for each worker,
every transaction crosses workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from benchmarks.driver.pace import Machine, in_a_quiet_phase
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.place import place
from benchmarks.experiments.subject import Subject
from benchmarks.experiments.targets.compare import compare_at
from benchmarks.experiments.targets.crossing import TWO, crossing, settings_of
from benchmarks.experiments.targets.eight_workers import LINE, ROW, measure_eight
from benchmarks.experiments.targets.engine_alone import in_fresh_process, of_workload
from benchmarks.experiments.targets.pipeline import TOP_SHARE, worker_us
from benchmarks.experiments.targets.verdict import Verdict

TRANSACTIONS: Final = 50_000


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], _many_keys: int) -> None:
    """Clusters that no row needs are not started."""
    async with place(bench) as here, AsyncExitStack() as stack:
        two = await crossing(bench, here, stack, TWO, TWO)
        if (verdict := verdicts.get("two-by-engine")) is not None:
            await _by_engine(bench, verdict, two)
        if (verdict := verdicts.get("two-by-one")) is not None:
            await _compare_cpu(bench, verdict, two, await crossing(bench, here, stack, 1, TWO))
        if ROW in verdicts or LINE in verdicts:
            await measure_eight(bench, here, stack, verdicts, two)


async def _compare_cpu(bench: Bench, verdict: Verdict, over: Subject, under: Subject) -> None:
    """At a rate near the highest one of the slower of the two."""
    rate = TOP_SHARE * min(await over.warmed(), await under.warmed())
    await compare_at(bench, verdict, partial(worker_us, over), partial(worker_us, under), "µs", rate)


async def _by_engine(bench: Bench, verdict: Verdict, two: Subject) -> None:
    machine = Machine()

    async def engine_us(_rate: float) -> float:
        alone = await in_a_quiet_phase(
            lambda: in_fresh_process(of_workload, settings_of(bench, TWO), TRANSACTIONS),
            lambda alone: machine.pace(alone.calibration),
            bench.common.repeats,
            bench.say,
        )
        bench.say(f"engine in memory: {alone.engine_us:.1f} µs a transaction, {alone.locked:.0%} in conflict")
        return alone.engine_us

    rate = TOP_SHARE * await two.warmed()
    await compare_at(bench, verdict, partial(worker_us, two), engine_us, "µs", rate)
