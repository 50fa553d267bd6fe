"""An embedded engine in the process of the client, without any service. The processor time is that of engine and client
together.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, nullcontext
from pathlib import Path

import styx
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.probe import Own
from benchmarks.driver.styx_target import ClientTarget
from benchmarks.driver.target import Target
from styx.cli.serving import SWITCH_INTERVAL_S
from styx.model.app import App
from styx.model.limits import Limits
from styx.process.memory import tune_collector

ROLE = "engine and client"


@asynccontextmanager
async def embedded(
    app: App, data_dir: Path | None, n_slots: int, snapshot_interval_s: float, in_flight_max: int
) -> AsyncIterator[Deployment]:
    """An engine with its data in `data_dir`, or in a temporary directory if that is None. Raises the errors of
    `styx.embedded`.
    """
    with ExitStack() as stack:
        place = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="styx-benchmark-")))
        async with styx.embedded(
            app,
            place,
            n_slots=n_slots,
            snapshot_interval=snapshot_interval_s,
            limits=Limits(in_flight_max=in_flight_max + 1),
        ) as client:
            tune_collector()
            stack.callback(sys.setswitchinterval, sys.getswitchinterval())
            sys.setswitchinterval(SWITCH_INTERVAL_S)

            def target(timeout_s: float) -> Target:
                return ClientTarget(lambda: client, timeout_s)

            yield Deployment(
                facts={"kind": "embedded", "slots": n_slots, "snapshot interval s": snapshot_interval_s},
                open_client=lambda: nullcontext(client),
                pids=lambda: {ROLE: [os.getpid()]},
                own=Own(ROLE, client.engine.metrics),
                target_here=target,
            )
