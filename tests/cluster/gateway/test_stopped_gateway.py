"""`styx gateway --drain` beside another one, on a cluster of real processes: its end costs no request."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import aiohttp
import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from styx.process.ports import free_port
from tests.gateway.balancer import balanced
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

CLIENTS = 8
REQUESTS = 100
"""Of all clients, before the gateway is told to stop, and after it has ended."""
PATIENT = {"Styx-Timeout": "600"}


def test_clients_on_kept_alive_connections_see_no_error(
    kafka: RealKafka, minio: RealMinio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STYX_DRAIN", "15")
    name = f"drain-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app="examples.bank:app",
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path,
        workers=1,
    )

    async def run() -> list[int]:
        statuses: list[int] = []
        over = asyncio.Event()
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            stopped, stopped_url = cluster.gateway, cluster.http_url
            assert stopped is not None
            cluster.gateway_port = free_port()
            await cluster.start_gateway()
            await cluster.ready()
            async with balanced(stopped_url, cluster.http_url) as url, aiohttp.ClientSession() as session:

                async def client(number: int) -> None:
                    while not over.is_set():
                        # A POST, which aiohttp never repeats by itself.
                        async with session.post(
                            f"{url}/v1/account/a{number}/open", json=[1], headers=PATIENT
                        ) as answer:
                            await answer.read()
                            statuses.append(answer.status)

                async def stop_in_the_middle() -> None:
                    await answered(REQUESTS)
                    await stopped.stop()
                    await answered(len(statuses) + REQUESTS)
                    over.set()

                async def answered(wanted: int) -> None:
                    while len(statuses) < wanted:  # noqa: ASYNC110 - a list is no event source
                        await asyncio.sleep(0.01)

                async with asyncio.TaskGroup() as group:
                    for number in range(CLIENTS):
                        group.create_task(client(number))
                    group.create_task(stop_in_the_middle())
            assert "told to stop: requests are served for 15 s more" in stopped.log.read_text("utf-8")
            cluster.check()
        return statuses

    statuses = asyncio.run(run())
    assert set(statuses) == {200}
    assert len(statuses) > 2 * REQUESTS
