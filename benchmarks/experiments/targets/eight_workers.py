"""The row of eight workers, and the row below it: the cost of eight processes instead of two on this machine.

Four independent clusters of two workers do the work of one such cluster, each a quarter of it. Together they get the
same rate from as many client processes, each with as many accounts, in epochs of the same size. Their additional cost
is the cost of eight processes, which eight workers of one cluster have as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, NamedTuple

from benchmarks.driver.deployment.own_cluster import BenchmarkCluster, deployment_of
from benchmarks.driver.result import Result
from benchmarks.experiments import spaced_worker
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.place import Place
from benchmarks.experiments.spread.deployment import spread_over
from benchmarks.experiments.subject import SATURATED_SECONDS, Load, Subject, subjects
from benchmarks.experiments.targets.compare import Over, compare_all_at
from benchmarks.experiments.targets.crossing import TWO, crossing, settings_of
from benchmarks.experiments.targets.epochs import WORKER, in_conflict, transactions_per_epoch
from benchmarks.experiments.targets.pacing import Pacing
from benchmarks.experiments.targets.pipeline import TOP_SHARE
from benchmarks.experiments.targets.verdict import Verdict
from styx.cluster.worker.arrival_gate import INTERVAL_SECONDS_MAX

EIGHT: Final = 8
FOUR: Final = 4
ROW: Final = "eight-by-two"
LINE: Final = "four-twos-by-two"
PACING_STEPS: Final = 2
"""That do not count, of the one and of the four, until their epochs are of one size."""


async def measure_eight(
    bench: Bench, here: Place, stack: AsyncExitStack, verdicts: Mapping[str, Verdict], two: Subject
) -> None:
    """All that is asked for in the same turns, at a rate near the highest one of the slowest."""
    saturated = await two.warmed()
    eight = await crossing(bench, here, stack, EIGHT, EIGHT)
    saturated = min(saturated, await eight.warmed())
    over = [Over(verdicts[ROW], partial(_worker_us, bench, eight, _Epochs()))] if ROW in verdicts else []
    of_two = _Epochs()
    if LINE in verdicts:
        clusters = [
            await here.cluster(f"{TWO}-workers-{number}", TWO, slots=TWO, worker_module=spaced_worker.MODULE)
            for number in range(1, FOUR + 1)
        ]
        four = await _spread(bench, stack, clusters)
        pacing = Pacing(partial(_space, clusters), INTERVAL_SECONDS_MAX)
        # As much as any of them can do, and not as much as a client can offer: with so many processes it gets so little
        # of the processors that it would still be refusing what is too much when the window is long over.
        in_flight = int(saturated * SATURATED_SECONDS / bench.common.clients)
        saturated = min(saturated, (await four.run(saturated, in_flight=in_flight)).throughput)
        of_two, of_four = _Epochs(tell=pacing.want), _Epochs(FOUR, pacing.had)
        for _ in range(PACING_STEPS):
            for subject, epochs in ((two, of_two), (four, of_four)):
                epochs.look(bench, subject, await subject.run(TOP_SHARE * saturated))
        over.append(Over(verdicts[LINE], partial(_worker_us, bench, four, of_four)))
    await compare_all_at(bench, over, partial(_worker_us, bench, two, of_two), "µs", TOP_SHARE * saturated)


async def _spread(bench: Bench, stack: AsyncExitStack, clusters: Sequence[BenchmarkCluster]) -> Subject:
    def check() -> None:
        for cluster in clusters:
            cluster.check()

    load = Load(f"{FOUR} clusters of {TWO}", settings_of(bench, TWO), clusters=FOUR)
    deployment = spread_over([deployment_of(cluster) for cluster in clusters])
    (subject,) = await stack.enter_async_context(subjects(bench, deployment, [load], check=check))
    return subject


def _space(clusters: Sequence[BenchmarkCluster], epoch_s: float) -> None:
    for cluster in clusters:
        spaced_worker.space(cluster.options.directory, epoch_s)


class _Epochs(NamedTuple):
    """Those of so many clusters; `tell` hears how many transactions they held."""

    clusters: int = 1
    tell: Callable[[float], None] = lambda _: None

    def look(self, bench: Bench, subject: Subject, result: Result) -> None:
        size, locked = transactions_per_epoch(result, self.clusters), in_conflict(result)
        bench.say(f"{subject.name}: {size:.0f} transactions an epoch, {locked:.1%} of them in conflict")
        self.tell(size)


async def _worker_us(bench: Bench, subject: Subject, epochs: _Epochs, rate: float) -> float:
    """Processor time a transaction of all workers."""
    result = await subject.at(rate)
    epochs.look(bench, subject, result)
    return result.cpu_us[WORKER]
