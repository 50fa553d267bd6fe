"""The echo as a deployment for the driver: an own broker, an app's topics as Styx makes them, and the echo process.

Afterwards all of it is removed. It takes the place of a whole cluster: the same clients send the same requests.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.replies import RepliesTopic
from benchmarks.driver.processes import Listener
from benchmarks.driver.styx_target import KafkaTargets
from benchmarks.reference.echo_process import READY
from proof.cluster.child import ChildFailed, ChildProcess
from proof.cluster.services import LocalServices
from styx.client.kafka.client import KafkaClient
from styx.kafka.appender import Appender
from styx.kafka.topics import REPLY_PARTITIONS_DEFAULT, ROUTING_KEY, ensure_topics, topics_of
from styx.model.app import App
from styx.schema.description import describe, routing_table

ROLE: Final = "echo"
READY_SECONDS_MAX: Final = 30.0
"""How long the process may take until it echoes."""
POLL_SECONDS: Final = 0.05


@asynccontextmanager
async def echo_deployment(app: App, slots: int) -> AsyncIterator[Deployment]:
    """With a broker of its own. Raises `OSError` if that cannot run, and `ChildFailed`."""
    with tempfile.TemporaryDirectory(prefix="styx-echo-") as directory:
        services = LocalServices(Path(directory))
        services.kafka.start()
        try:
            async with echo_on(services.kafka_address, app, slots, Path(directory)) as deployment:
                yield deployment
        finally:
            services.kafka.stop()


@asynccontextmanager
async def echo_on(kafka: str, app: App, slots: int, directory: Path) -> AsyncIterator[Deployment]:
    """With the broker at HOST:PORT, which has no topics of the app yet; the process's log goes into `directory`."""
    topics, replies = topics_of(app.name), REPLY_PARTITIONS_DEFAULT
    await ensure_topics(kafka, topics, slots, replies)
    await _publish(kafka, app)
    process = await ChildProcess.start(
        "echo",
        ["-m", "benchmarks.reference.echo_process", kafka, app.name, str(slots), str(replies)],
        {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        directory,
    )
    broker = Listener(int(kafka.rpartition(":")[2]))

    def pids() -> Mapping[str, Sequence[int]]:
        process.check()
        return {ROLE: [process.pid], "broker": broker.pids()}

    url = f"kafka://{kafka}"
    try:
        await _echoing(process)
        yield Deployment(
            facts={"kind": "echo", "slots": slots, "through": "kafka"},
            open_client=lambda: KafkaClient(url, app),
            make_target=KafkaTargets(url, app.name),
            pids=pids,
            replies=RepliesTopic(url, app.name),
        )
        await process.stop()
    finally:
        await process.kill()


async def _publish(kafka: str, app: App) -> None:
    """Publishes the app's routing table, as a coordinator does."""
    appender = Appender(kafka, on_failure=lambda error: None)
    await appender.start()
    table = routing_table(describe(app)).encode()
    await appender.append(topics_of(app.name).directory, 0, [(ROUTING_KEY, table, [])])
    await appender.stop()


async def _echoing(process: ChildProcess) -> None:
    try:
        async with asyncio.timeout(READY_SECONDS_MAX):
            while READY not in process.log.read_text("utf-8"):
                process.check()
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise ChildFailed(f"the echo did not begin within {READY_SECONDS_MAX:g} s.{process.tail()}") from None
