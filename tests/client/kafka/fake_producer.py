"""aiokafka's producer without Kafka: it keeps batches, and a test says what comes of each."""

import asyncio
from typing import Any

import pytest

from styx.kafka_requests import producer
from styx.kafka_requests.producer import RequestProducer
from styx.kafka_requests.waiters import Waiter
from styx.log.kafka.address import KafkaAddress

BATCH_RECORDS_MAX = 3


class FakeBatch:
    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.slot = -1
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def append(self, *, key: None, value: bytes, timestamp: None) -> object | None:
        if len(self.values) == BATCH_RECORDS_MAX:
            return None
        self.values.append(value)
        return self

    def close(self) -> None: ...


class FakeKafka:
    """What all producers of a test have sent; `refuse` makes the next `send_batch` raise, `alive` is for the probe."""

    def __init__(self) -> None:
        self.batches: list[FakeBatch] = []
        self.started = self.stopped = 0
        self.alive = True
        self.refuse: BaseException | None = None

    def __call__(self, **options: Any) -> "FakeProducer":
        return FakeProducer(self)

    async def add_topic(self, topic: str) -> bool:
        return True

    async def force_metadata_update(self) -> bool:
        return self.alive

    async def close(self) -> None: ...

    async def _get_conn(self, node: int) -> None: ...

    def sent(self) -> list[tuple[int, list[bytes]]]:
        return [(batch.slot, batch.values) for batch in self.batches]


class FakeProducer:
    def __init__(self, kafka: FakeKafka) -> None:
        self.client = kafka
        self._sender = self

    async def start(self) -> None:
        self.client.started += 1

    async def close(self) -> None:
        self.client.stopped += 1

    def create_batch(self) -> FakeBatch:
        return FakeBatch()

    async def send_batch(self, batch: FakeBatch, topic: str, *, partition: int) -> asyncio.Future[None]:
        refused, self.client.refuse = self.client.refuse, None
        if refused is not None:
            raise refused
        batch.slot = partition
        self.client.batches.append(batch)
        return batch.done


async def started(kafka: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> RequestProducer:
    """A producer on `kafka` that looks for signs of life at every turn of the event loop."""
    monkeypatch.setattr(producer, "AIOKafkaProducer", kafka)
    monkeypatch.setattr(producer, "PROBE_SECONDS", 0)
    monkeypatch.setattr(producer, "CLOSE_SECONDS", 0.001)
    made = RequestProducer(KafkaAddress("nowhere:9092"), "requests", lambda task: None)
    await made.start()
    return made


def waiter(name: bytes, slot: int = 0, repeatable: bool = False) -> Waiter:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    return Waiter(name.decode(), slot, name, future, True, repeatable, 0.0, 1e9)


async def turns(number: int = 10) -> None:
    """Lets everything happen that can."""
    for _ in range(number):
        await asyncio.sleep(0)
