"""What a process shows is what docs/metrics.md says: no metric more, none less, none of another type.

Of processes that have only just been made; of a cluster at work in `test_cluster_metrics.py`.
"""

from __future__ import annotations

import pytest

import styx
from styx.cluster.coordinator.process import CoordinatorProcess
from styx.cluster.gateway_process import GatewayProcess
from styx.cluster.options import CoordinatorOptions, ProcessOptions, cluster_limits
from styx.cluster.worker.process import WorkerProcess
from styx.gateway.metrics import GatewayMetrics
from styx.log.kafka.address import parse_kafka_url
from styx.store import MemoryStore
from styx.transport import Security
from tests.embedded.ledger_app import app
from tests.metrics.documented import documented, shown

pytestmark = pytest.mark.anyio

EACH = "Each process of a cluster"
OPTIONS = ProcessOptions(
    name="p",
    security=Security(b"0123456789abcdef", "c"),
    coordinator="127.0.0.1:1",
    log=parse_kafka_url("kafka://127.0.0.1:1"),
    open_store=MemoryStore,
)


async def test_worker() -> None:
    worker = WorkerProcess(OPTIONS)
    assert shown(worker.metrics()) == documented("Worker", EACH)
    worker.background.stop()


async def test_coordinator() -> None:
    wanted = CoordinatorOptions(app="bank", n_slots=4, workers=2, limits=cluster_limits())
    assert shown(CoordinatorProcess(OPTIONS, wanted).metrics()) == documented("Coordinator", EACH)


async def test_gateway() -> None:
    process = GatewayProcess("g", OPTIONS.security, OPTIONS.coordinator, OPTIONS.log)
    text = process.metrics() + GatewayMetrics(lambda: 0).text()
    assert shown(text) == documented("Gateway", EACH)


async def test_embedded() -> None:
    async with styx.embedded(app) as client:
        assert shown(client.engine.metrics()) == documented("Embedded engine")
