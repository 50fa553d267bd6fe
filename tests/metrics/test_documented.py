"""What a process shows is what docs/metrics.md says: no metric more, none less, none of another type.

Of processes that have only just been made; of a cluster at work in `test_cluster_metrics.py`.
"""

from __future__ import annotations

import pytest

import styx
from tests.embedded.ledger_app import app
from tests.metrics.documented import documented, shown
from tests.metrics.processes import audit_text, coordinator_text, gateway_text, ingest_text, replica_text, worker_text

pytestmark = pytest.mark.anyio

EACH = "Each process of a cluster"


async def test_worker() -> None:
    assert shown(worker_text()) == documented("Worker", EACH)


async def test_coordinator() -> None:
    assert shown(coordinator_text()) == documented("Coordinator", EACH)


async def test_gateway() -> None:
    assert shown(gateway_text()) == documented("Gateway", EACH)


async def test_ingest() -> None:
    own = {name for name in documented("Gateway") if name.startswith("styx_gateway_")}
    gateways = {name: kind for name, kind in documented("Gateway", EACH).items() if name not in own}
    assert shown(ingest_text()) == documented("Ingest") | gateways


async def test_replica() -> None:
    assert shown(replica_text()) == documented("Replica", EACH)


async def test_audit() -> None:
    assert shown(audit_text()) == documented("Audit", EACH)


async def test_embedded() -> None:
    async with styx.embedded(app) as client:
        assert shown(client.engine.metrics()) == documented("Embedded engine")
