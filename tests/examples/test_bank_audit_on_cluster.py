"""The bank audit on a cluster of real processes, while a worker and the gateway are killed."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from examples.bank_audit.scenario import BankAudit, Plan, Result
from proof.cluster import ClusterOptions, ClusterUnderTest
from styx.cli.demo.display import PlainDisplay
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

BETWEEN = 300
"""Requests answered between two steps."""


@pytest.fixture
def options(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> ClusterOptions:
    name = f"bank-{secrets.token_hex(4)}"
    return ClusterOptions(
        app="examples.bank:app",
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path,
    )


def test_a_worker_and_the_gateway_are_killed_under_it(options: ClusterOptions) -> None:
    async def run() -> Result:
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            audit = BankAudit(Plan(cluster.http_url, 16, 240.0, 50, 60.0), PlainDisplay())
            running = asyncio.create_task(audit.run())

            async def more() -> None:
                wanted = audit.order.replayed + BETWEEN
                while audit.order.replayed < wanted and not running.done():  # noqa: ASYNC110 - a counter is no event source
                    await asyncio.sleep(0.01)

            await more()
            victim = cluster.workers[0]
            assert victim is not None
            await victim.kill()
            await cluster.start_worker(0)
            await more()
            assert cluster.gateway is not None
            await cluster.gateway.kill()
            await cluster.start_gateway()
            await more()
            audit.stop.set()
            result = await running
            cluster.check()
            return result

    result = asyncio.run(run())
    assert [check.detail for check in result.checks if not check.holds] == []
    assert len(result.checks) == 6
    assert result.totals.sent_again > 0
    assert result.totals.answered > 3 * BETWEEN
