"""Exchanges over a connection of aiokafka: answers in order, however they are cut; what ends the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiokafka.conn import AIOKafkaConnection, AIOKafkaProtocol
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.admin import ApiVersionRequest
from aiokafka.protocol.produce import ProduceResponse_v7

from styx.kafka.exchanges import Exchanges
from styx.kafka.wire import Produce, Produced
from styx.testing.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

VERSIONS = {0: (3, 9)}


class Broker:
    """Takes one connection, and writes what it is told to."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[int] = asyncio.Queue()
        """The numbers of the requests that came."""
        self._writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        while head := await reader.read(4):
            request = await reader.readexactly(int.from_bytes(head, "big"))
            self.asked.put_nowait(int.from_bytes(request[4:8], "big"))

    def write(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)

    def close(self) -> None:
        assert self._writer is not None
        self._writer.close()


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    broker = Broker()
    yield broker
    if broker._writer is not None:
        broker.close()


@pytest.fixture
async def connection(broker: Broker) -> AsyncIterator[Any]:
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    connection = AIOKafkaConnection("127.0.0.1", server.sockets[0].getsockname()[1])
    connection._closed_fut = loop.create_future()
    reader = asyncio.StreamReader()
    protocol = AIOKafkaProtocol(connection._closed_fut, reader, loop=loop)
    transport, _ = await loop.create_connection(lambda: protocol, connection.host, connection.port)
    connection._reader, connection._protocol = reader, protocol
    connection._writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    connection._read_task = connection._create_reader_task()
    connection._versions = VERSIONS
    yield connection
    connection.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await connection._closed_fut
    server.close()


def produce(partition: int) -> Produce:
    return Produce(None, -1, 15_000, [("t", [(partition, b"data")])])


def answer(number: int, partition: int) -> bytes:
    body: bytes = number.to_bytes(4, "big") + ProduceResponse_v7([("t", [(partition, 0, 9, -1, 0)])], 0).encode()
    return len(body).to_bytes(4, "big") + body


async def awaited(future: asyncio.Future[Any]) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await future


async def test_answers_come_in_order_however_they_are_cut(broker: Broker, connection: Any) -> None:
    exchanges = Exchanges(connection, 60.0)
    futures = [exchanges.ask(produce(partition)) for partition in range(3)]
    numbers = [await broker.asked.get() for _ in futures]
    data = b"".join(map(answer, numbers, range(3)))
    for at in range(0, len(data), 7):
        broker.write(data[at : at + 7])
        await asyncio.sleep(0)
    assert [(await awaited(future)).topics for future in futures] == [[("t", [(n, 0, 9)])] for n in range(3)]


async def test_an_answer_that_nobody_awaits_any_more_is_passed_over(broker: Broker, connection: Any) -> None:
    exchanges = Exchanges(connection, 60.0)
    first, second = exchanges.ask(produce(0)), exchanges.ask(produce(1))
    first.cancel()
    broker.write(answer(await broker.asked.get(), 0) + answer(await broker.asked.get(), 1))
    assert isinstance(await awaited(second), Produced)


async def test_what_aiokafka_sends_is_answered_as_well(broker: Broker, connection: Any) -> None:
    exchanges = Exchanges(connection, 60.0)
    theirs = asyncio.ensure_future(connection.send(ApiVersionRequest()))
    ours = exchanges.ask(produce(0))
    number = await broker.asked.get()
    broker.write((10).to_bytes(4, "big") + number.to_bytes(4, "big") + bytes(6))
    broker.write(answer(await broker.asked.get(), 0))
    assert (await awaited(theirs)).api_versions == []
    assert isinstance(await awaited(ours), Produced)


def _another_number(broker: Broker, number: int) -> None:
    broker.write(answer(number + 1, 0))


def _half_an_answer(broker: Broker, number: int) -> None:
    broker.write((6).to_bytes(4, "big") + number.to_bytes(4, "big") + b"\0\0")


def _no_request(broker: Broker, number: int) -> None:
    broker.write(answer(number, 0) * 3)


def _the_end(broker: Broker, _: int) -> None:
    broker.close()


@pytest.mark.parametrize("end", [_another_number, _half_an_answer, _no_request, _the_end])
async def test_a_connection_that_is_out_of_step_ends(
    broker: Broker, connection: Any, end: Callable[[Broker, int], None]
) -> None:
    exchanges = Exchanges(connection, 60.0)
    first, second = exchanges.ask(produce(0)), exchanges.ask(produce(0))
    end(broker, await broker.asked.get())
    with pytest.raises(KafkaConnectionError):
        await awaited(second)
    assert not exchanges.open
    assert not exchanges.of(connection)
    with pytest.raises(KafkaConnectionError, match="closed"):
        exchanges.ask(produce(0))
    await asyncio.wait([first])
    first.exception()


async def test_a_silent_broker_is_given_up_and_an_idle_one_is_not(broker: Broker, connection: Any) -> None:
    exchanges = Exchanges(connection, 0.03)
    await asyncio.sleep(0.1)
    assert exchanges.open, "nothing was asked"
    future = exchanges.ask(produce(0))
    with pytest.raises(KafkaConnectionError):
        await awaited(future)
    assert not exchanges.open
