"""The place of a benchmark that chooses between an engine in its own process and a cluster on a broker that runs: its
options, and beside the deployment what the log says afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.embedded import embedded
from benchmarks.driver.deployment.on_broker import cluster_on_broker, deployment_of
from proof.cluster.audit import audit
from proof.cluster.recorded import whole_stream
from styx.client.embedded import EmbeddedClient
from styx.embedded_engine.options import N_SLOTS_DEFAULT, N_SLOTS_MAX
from styx.errors import ConfigurationError
from styx.log.base import Stream
from styx.messages import Reply
from styx.model.app import App
from styx.model.limits import Limits
from styx.sequencer.epoch_record import EPOCHS_PARTITION, LogEntry, decode
from styx.testing.history import HistoryReport, check_history
from styx.testing.patience import PATIENCE_SECONDS
from styx.testing.recorded_history import read_history

IN_FLIGHT_MAX: Final = Limits().in_flight_max
"""Requests under way at once; a client refuses more."""
CLUSTER_SLOTS: Final = 8
WORKERS_MAX: Final = 64
KEPT_SECONDS: Final = 86_400.0
"""An embedded engine's snapshot interval, because a snapshot releases the log's beginning."""


class Place(NamedTuple):
    """A deployment that runs, with `n_slots` slots, called `title` in results.

    `epochs` gives the epochs stream from its first record on; it blocks. `history` waits until all is answered, and
    checks every reply and all state against the serial execution. It takes the replies that clients were given, and
    raises `SerializabilityViolation`.
    """

    deployment: Deployment
    n_slots: int
    title: str
    epochs: Callable[[], list[LogEntry]]
    history: Callable[[Iterable[Reply]], Awaitable[HistoryReport]]


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--kafka`, `--workers` and `--slots`."""
    parser.add_argument(
        "--kafka",
        metavar="HOST:PORT",
        help="run on a cluster of real processes on this broker, where the app's topics then stay (default: an engine "
        "in this process)",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="with --kafka: workers of the cluster (default 2)")
    parser.add_argument(
        "--slots", type=int, metavar="N", help=f"(default {N_SLOTS_DEFAULT}; with --kafka {CLUSTER_SLOTS})"
    )


def check_place(options: argparse.Namespace, slots_min: int = 1) -> None:
    """Fills in defaults; raises `ConfigurationError` for options that make no sense."""
    if options.kafka is None and options.workers is not None:
        raise ConfigurationError("--workers needs --kafka: without it one engine runs, in this process")
    if options.kafka is not None and not options.kafka.rpartition(":")[2].isdecimal():
        raise ConfigurationError(f"--kafka is HOST:PORT of a broker that runs, got {options.kafka}")
    if options.slots is None:
        options.slots = N_SLOTS_DEFAULT if options.kafka is None else CLUSTER_SLOTS
    check_number("--slots", options.slots, slots_min, N_SLOTS_MAX)
    if options.kafka is not None:
        options.workers = 2 if options.workers is None else options.workers
        check_number("--workers", options.workers, 1, min(WORKERS_MAX, options.slots))


def check_number(name: str, value: float, least: float, most: float) -> None:
    """Raises `ConfigurationError` for a number out of its range, or a NaN."""
    if not least <= value <= most:
        raise ConfigurationError(f"{name} is a number from {least:g} to {most:g}, got {value:g}")


@asynccontextmanager
async def placed(options: argparse.Namespace, app: App, app_target: str) -> AsyncIterator[Place]:
    """The place that checked `options` ask for; `app_target` is the app as MODULE:APP. Raises `ChildFailed` if a
    cluster does not start.
    """
    if options.kafka is None:
        async with (
            embedded(app, None, options.slots, KEPT_SECONDS, IN_FLIGHT_MAX) as deployment,
            deployment.open_client() as client,
        ):
            assert isinstance(client, EmbeddedClient)
            yield _of_engine(deployment, client, options.slots)
        return
    # aiokafka logs each attempt to reach a broker that is away.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    name = app.name.replace("_", "-")
    async with cluster_on_broker(app_target, name, options.kafka, options.workers, options.slots) as cluster:

        def epochs() -> list[LogEntry]:
            reader = cluster.reader()
            try:
                return [decode(each.payload) for each in whole_stream(reader, Stream.EPOCHS)[EPOCHS_PARTITION]]
            finally:
                reader.close()

        async def history(told: Iterable[Reply]) -> HistoryReport:
            return (await audit(cluster, told)).history

        title = f"a cluster of {options.workers} workers"
        yield Place(deployment_of(cluster), options.slots, title, epochs, history)


def _of_engine(deployment: Deployment, client: EmbeddedClient, n_slots: int) -> Place:
    engine = client.engine

    def epochs() -> list[LogEntry]:
        return [decode(each.payload) for each in engine.log.read(Stream.EPOCHS, EPOCHS_PARTITION, 0)]

    async def history(told: Iterable[Reply]) -> HistoryReport:
        if not await engine.settled(PATIENCE_SECONDS):
            raise TimeoutError(f"{engine.in_flight} requests are not answered after {PATIENCE_SECONDS:g} s")
        await engine.flushed()
        found = read_history(engine.log, n_slots)
        return await asyncio.to_thread(
            check_history,
            engine.app,
            found.requests,
            found.replies,
            engine.encoded_state(),
            limits=engine.limits,
            n_slots=n_slots,
            externals=found.externals,
            complete=True,
        )

    return Place(deployment, n_slots, "an engine in this process", epochs, history)
