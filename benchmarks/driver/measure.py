"""One measurement: clients run a plan while a probe reads the processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
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
    """The measured data. `window_from` is the window's start by the clock, in UTC. `calibration` was made before the
    run and after it. `marks` come from the most exact observer.
    """

    plan: LoadPlan
    report: RunReport
    probe: Probe
    environment: Environment
    calibration: tuple[Calibration, Calibration]
    marks: list[Mark]
    window_from: datetime


async def measure(clients: Clients, plan: LoadPlan, probe: Probe, tell: Tell = lambda _, __: None) -> Measurement:
    """Runs `plan`, which the clients share among themselves. Raises `ClientFailed`, `ConfigurationError`."""
    plan.check()
    where = environment()
    before = calibrate()
    start_s = time.monotonic() + START_LEAD_SECONDS
    from_s, given_up = start_s + plan.warm_up_s, asyncio.Event()
    window_from = datetime.now(UTC) + timedelta(seconds=from_s - time.monotonic())
    running = asyncio.ensure_future(
        clients.run(plan, start_s, lambda progress: tell(progress, probe), lambda _: given_up.set())
    )
    watching = asyncio.ensure_future(_watch(probe, from_s, plan.duration_s, given_up))
    try:
        report = await running
        await watching
    finally:
        running.cancel()
        watching.cancel()
        await asyncio.wait([running, watching])
    return Measurement(plan, report, probe, where, (before, calibrate()), probe.marks, window_from)


async def _watch(probe: Probe, from_s: float, duration_s: float, given_up: asyncio.Event) -> None:
    """Reads the processes in the window, which ends when the clients give up: they wait for replies after that."""
    if not await _reached(from_s, given_up):
        await probe.never_began()
        return
    await probe.begin()
    look_s = from_s
    while (look_s := look_s + LOOK_SECONDS) < from_s + duration_s and await _reached(look_s, given_up):
        await probe.look()
    await _reached(from_s + duration_s, given_up)
    await probe.end()


async def _reached(at_s: float, given_up: asyncio.Event) -> bool:
    """Waits until then; False as soon as the run is given up."""
    try:
        async with asyncio.timeout(max(at_s - time.monotonic(), 0)):
            await given_up.wait()
    except TimeoutError:
        return True
    return False
