"""A connection that is closed, and that aiokafka takes for open, ends nothing for good; on uvloop, where it would."""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection
from aiokafka.structs import BrokerMetadata

from styx.kafka.closed_connections import drop_closed_connections
from styx.testing.patience import PATIENCE_SECONDS


def test_a_look_up_over_a_closed_connection_has_an_end() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_look_up_over_a_closed_connection())


async def _look_up_over_a_closed_connection() -> None:
    server = await asyncio.start_server(_silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=1_000)
    drop_closed_connections(client)
    connection = await _connected(client, port)
    connection._writer.transport.abort()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    # The moment in which the transport is closed and nobody has looked at the reader yet.
    connection._reader._eof = False
    assert connection.connected()
    looking_up = asyncio.create_task(client._md_synchronizer())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait_for(client.force_metadata_update(), PATIENCE_SECONDS)
    finally:
        looking_up.cancel()
        await asyncio.gather(looking_up, return_exceptions=True)
        server.close()
    assert looking_up.cancelled(), "the look-up went on until it was told to end"


async def _connected(client: AIOKafkaClient, port: int) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = AIOKafkaConnection("127.0.0.1", port, on_close=client._on_connection_closed)
    connection._reader, connection._writer, connection._versions = reader, writer, {3: (0, 5)}
    connection._read_task = asyncio.create_task(asyncio.sleep(60))
    client.cluster._brokers = {1: BrokerMetadata(1, "127.0.0.1", port, None)}
    client._conns[1, ConnectionGroup.DEFAULT] = connection
    return connection


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.close()
