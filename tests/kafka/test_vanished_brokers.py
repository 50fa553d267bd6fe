"""A broker that vanished holds nobody up: connecting to it has an end, and the kernel watches connections to it."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.structs import BrokerMetadata

from styx.kafka import vanished_brokers
from styx.kafka.session import KafkaSession
from styx.kafka.vanished_brokers import notice_vanished_brokers
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.anyio


async def test_connecting_to_a_broker_that_says_nothing_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vanished_brokers, "CONNECT_SECONDS", 0.05)
    told = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        told.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=60_000)
    client.cluster._brokers = {1: BrokerMetadata(1, "127.0.0.1", port, None)}
    notice_vanished_brokers(client)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert not await client.ready(1)
        # Nor is the connection left open.
        await told.wait()
    server.close()


@pytest.mark.slow
async def test_the_kernel_watches_each_connection(kafka: RealKafka) -> None:
    session = KafkaSession(kafka.bootstrap)
    try:
        await session.open()
        node = session._any_broker()
        for group in ConnectionGroup:
            assert await session._client.ready(node, group=group)
            watched = session._client._conns[node, group]._writer.transport.get_extra_info("socket")
            assert watched.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    finally:
        await session.close()
