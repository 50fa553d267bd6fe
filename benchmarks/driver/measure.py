"""One measurement: clients run a plan while a probe reads the processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from benchmarks.driver.calibration import Calibration, calibrate
from benchmarks.driver.clients import Clients
from benchmarks.driver.environment import Environment, environment
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Mark, Probe
from benchmarks.driver.reports import Progress, RunReport

START_LEAD_SECONDS: Final = 0.2
"""The time from sending the plan to its start, so that all clients have received it."""
LOOK_SECONDS: Final = 1.0

Tell = Callable[[Progress, Probe], None]


class Measurement(NamedTuple):
    """The measured data. `calibration` was made before the run and after it. `marks` come from the most exact
    observer.
    """

    plan: LoadPlan
    report: RunReport
    probe: Probe
    environment: Environment
    calibration: tuple[Calibration, Calibration]
    marks: list[Mark]


async def measure(clients: Clients, plan: LoadPlan, probe: Probe, tell: Tell = lambda _, __: None) -> Measurement:
    """Runs `plan`, which the clients share among themselves. Raises `ClientFailed`, `ConfigurationError`."""
    plan.check()
    where = environment()
    before = calibrate()
    start_s = time.monotonic() + START_LEAD_SECONDS
    running = asyncio.ensure_future(clients.run(plan, start_s, lambda progress: tell(progress, probe)))
    watching = asyncio.ensure_future(_watch(probe, start_s + plan.warm_up_s, plan.duration_s))
    try:
        report = await running
        if not report.gave_up:
            await watching
    finally:
        running.cancel()
        watching.cancel()
        await asyncio.wait([running, watching])
    if watching.cancelled():
        await probe.cut_short()
    return Measurement(plan, report, probe, where, (before, calibrate()), probe.marks)


async def _watch(probe: Probe, from_s: float, duration_s: float) -> None:
    await _sleep_until(from_s)
    await probe.begin()
    look_s = from_s
    while (look_s := look_s + LOOK_SECONDS) < from_s + duration_s:
        await _sleep_until(look_s)
        await probe.look()
    await _sleep_until(from_s + duration_s)
    await probe.end()


async def _sleep_until(at_s: float) -> None:
    await asyncio.sleep(max(at_s - time.monotonic(), 0))
