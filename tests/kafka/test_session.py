"""A connection that is closed, and that aiokafka takes for open, ends nothing for good; on uvloop, where it would.

A broker that vanished holds nobody up: connecting to it has an end, and the kernel watches connections to it.
aiokafka's messages come now and then, not each time.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest
import uvloop
from aiokafka.client import ConnectionGroup
from aiokafka.conn import AIOKafkaConnection
from aiokafka.structs import BrokerMetadata

from styx.kafka import session as session_module
from styx.kafka.session import REPEAT_SECONDS, KafkaSession, MendedClient, Repeated
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka


def test_a_look_up_over_a_closed_connection_has_an_end() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_look_up_over_a_closed_connection())


async def _look_up_over_a_closed_connection() -> None:
    server = await asyncio.start_server(_silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = MendedClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=1_000)
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


async def _connected(client: MendedClient, port: int) -> Any:
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


@pytest.mark.anyio
async def test_connecting_to_a_broker_that_says_nothing_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "CONNECT_SECONDS", 0.05)
    told = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        told.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = MendedClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=60_000)
    client.cluster._brokers = {1: BrokerMetadata(1, "127.0.0.1", port, None)}
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert not await client.ready(1)
        # Nor is the connection left open.
        await told.wait()
    server.close()


@pytest.mark.anyio
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


def test_a_message_passes_again_only_after_a_while() -> None:
    now = [0.0]
    passes = Repeated(lambda: now[0]).filter
    assert passes(_message("cannot connect to %s", "a"))
    assert not passes(_message("cannot connect to %s", "b"))
    assert passes(_message("something else"))
    now[0] = REPEAT_SECONDS - 0.1
    assert not passes(_message("cannot connect to %s", "a"))
    now[0] = REPEAT_SECONDS
    assert passes(_message("cannot connect to %s", "a"))


@pytest.mark.anyio
async def test_sessions_calm_the_client_and_nobody_else() -> None:
    for _ in range(2):
        await KafkaSession("127.0.0.1:1").close()
    assert [type(each) for each in logging.getLogger("aiokafka").filters] == [Repeated]
    assert not logging.getLogger("styx").filters


def _message(text: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("aiokafka", logging.ERROR, "", 0, text, arguments, None)
