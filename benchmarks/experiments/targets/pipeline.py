"""The group `pipeline`: one worker on Kafka against a process that only echoes, with the same clients and broker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.place import place
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.experiments.targets.compare import compare, compare_at
from benchmarks.experiments.targets.declared import CPU_RATES, TOP
from benchmarks.experiments.targets.verdict import Verdict
from benchmarks.reference.echo_deployment import ROLE as ECHO
from benchmarks.ycsbt.settings import Settings

WORKER: Final = "worker"
IDLE_RATE: Final = 100.0
"""Requests a second at which latency is only the way there and back."""
TOP_SHARE: Final = 0.85
"""Of the saturated throughput: near the highest rate, but with certainty below it."""


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], _many_keys: int) -> None:
    """All rows on the same two deployments."""
    settings = Settings(keys=bench.common.keys, n_slots=bench.common.slots)
    async with place(bench) as here:
        cluster, echoing = await here.cluster("one-worker", 1), await here.echo()
        async with (
            subjects(bench, deployment_of(cluster), [Load("styx", settings)], check=cluster.check) as (styx,),
            subjects(bench, echoing, [Load("echo", settings, echoed=True)]) as (echo,),
        ):
            await echo.warmed()
            top = TOP_SHARE * await styx.warmed()
            for name, verdict in verdicts.items():
                if name == "rate-by-echo":
                    await compare(bench, verdict, styx.highest_rate, echo.highest_rate, "/s")
                elif name == "latency-by-echo":
                    await _compare_latency(bench, verdict, styx, echo)
                elif name == f"cpu-{TOP}":
                    await compare_at(bench, verdict, partial(worker_us, styx), partial(_echo_us, echo), "µs", top)
                else:
                    rate = next(float(rate) for rate in CPU_RATES if name == f"cpu-{rate}")
                    over, under = partial(worker_us, styx, rate), partial(_echo_us, echo, rate)
                    await compare(bench, verdict, over, under, "µs")


async def _compare_latency(bench: Bench, verdict: Verdict, styx: Subject, echo: Subject) -> None:
    async def ms(subject: Subject) -> float:
        return (await subject.at(IDLE_RATE)).answered.p50_us / 1e3

    await compare(bench, verdict, lambda: ms(styx), lambda: ms(echo), "ms")


async def worker_us(subject: Subject, rate: float) -> float:
    """Processor time a transaction of all workers."""
    return (await subject.at(rate)).cpu_us[WORKER]


async def _echo_us(subject: Subject, rate: float) -> float:
    return (await subject.at(rate)).cpu_us[ECHO]
