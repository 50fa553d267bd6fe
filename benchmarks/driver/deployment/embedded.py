"""An embedded engine in the process of the client, without any service. The processor time is that of engine and client
together.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

import styx
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.probe import Own
from benchmarks.driver.styx_target import ClientTarget
from benchmarks.driver.target import Target
from proof.cluster.child import ChildProcess
from styx.cli.serving import SWITCH_INTERVAL_S
from styx.model.app import App
from styx.model.limits import Limits
from styx.process.memory import tune_collector
from styx.process.ports import free_port

ROLE = "engine and client"


@asynccontextmanager
async def embedded(
    app: App,
    data_dir: Path | None,
    n_slots: int,
    snapshot_interval_s: float,
    in_flight_max: int,
    *,
    in_memory: bool = False,
    epoch_transactions: int | None = None,
    own_replica: bool = False,
) -> AsyncIterator[Deployment]:
    """An engine with its data in `data_dir`, in a temporary directory if that is None, or nowhere if it is `in_memory`.
    An epoch of it has `epoch_transactions` at most, None for the engine's own limit. With `own_replica` a
    replica follows its files, which it must have, in a process of its own. Raises the errors of `styx.embedded`.
    """
    limits = Limits(in_flight_max=in_flight_max + 1)
    facts: dict[str, Any] = {"kind": "embedded", "slots": n_slots, "snapshot interval s": snapshot_interval_s}
    if epoch_transactions is not None:
        limits = msgspec.structs.replace(limits, epoch_transactions_max=epoch_transactions)
        facts["epoch transactions"] = epoch_transactions
    if in_memory:
        facts["in memory"] = True
    with ExitStack() as stack:
        place = data_dir
        if place is None and not in_memory:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="styx-benchmark-")))
        async with styx.embedded(
            app,
            place,
            n_slots=n_slots,
            snapshot_interval=snapshot_interval_s,
            limits=limits,
        ) as client:
            tune_collector()
            stack.callback(sys.setswitchinterval, sys.getswitchinterval())
            sys.setswitchinterval(SWITCH_INTERVAL_S)

            def target(timeout_s: float) -> Target:
                return ClientTarget(lambda: client, timeout_s)

            deployment = Deployment(
                facts=facts,
                open_client=lambda: nullcontext(client),
                pids=lambda: {ROLE: [os.getpid()]},
                own=Own(ROLE, client.engine.metrics),
                target_here=target,
            )
            if not own_replica:
                yield deployment
                return
            assert place is not None, "a replica reads files"
            async with _replica_of(place) as (child, url):
                pids = {ROLE: [os.getpid()], "replica": [child.pid]}
                yield replace(deployment, pids=lambda: pids, replica=url)


@asynccontextmanager
async def _replica_of(data_dir: Path) -> AsyncIterator[tuple[ChildProcess, str]]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="styx-benchmark-replica-") as logs:
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        child = await ChildProcess.start("replica", _words(data_dir, port), environment, Path(logs))
        try:
            yield child, f"http://127.0.0.1:{port}"
        finally:
            if child.alive:
                await child.kill()


def _words(data_dir: Path, port: int) -> list[str]:
    return ["-m", "styx", "replica", "--port", str(port), "--data-dir", str(data_dir.resolve())]
