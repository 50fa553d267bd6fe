"""A session with Kafka without Kafka: it keeps what is sent, and a test says what comes of it."""

import asyncio
from collections import deque
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.memory_records import MemoryRecords

from styx.host.waiters import Waiter


class Exchange:
    """One produce request: the values and the (producer id, sequence) of the batch for each slot."""

    def __init__(self, node: int, request: ProduceRequest) -> None:
        self.node = node
        self.values: dict[int, list[bytes]] = {}
        self.numbers: dict[int, tuple[int, int]] = {}
        self.answer: asyncio.Future[Mapping[int, int]] = asyncio.get_running_loop().create_future()
        for _, entries in request._topics:
            for slot, data in entries:
                batch: Any = MemoryRecords(bytes(data)).next_batch()
                self.values[slot] = [record.value for record in batch]
                self.numbers[slot] = batch.producer_id, batch.base_sequence

    def acknowledge(self, **codes: int) -> None:
        """All of it, but for slots with a code of their own, given as `slot_1=6`."""
        named = {int(name.removeprefix("slot_")): code for name, code in codes.items()}
        self.answer.set_result({slot: named.get(slot, 0) for slot in self.values})


class FakeSession:
    """Leads every slot on node 0, unless `leaders` says otherwise."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.leaders: dict[int, int | None] = {}
        self.identities = 0
        self.refusals: deque[int] = deque()
        """Codes of the next requests for an identity."""
        self.alive = True
        self.fetches: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        """Node and offset of each fetch."""
        self.fetched: asyncio.Queue[Any] = asyncio.Queue()
        """The answer to each: (code, end, data), or an error to raise."""
        self.first = self.end = 0

    def __str__(self) -> str:
        return "Kafka at nowhere:9092"

    async def refresh(self) -> bool:
        await asyncio.sleep(0)
        return self.alive

    def leader(self, topic: str, partition: int) -> int | None:
        return self.leaders.get(partition, 0)

    async def send_anywhere(self, request: Any) -> Any:
        self.identities += 1
        code = self.refusals.popleft() if self.refusals else 0
        return SimpleNamespace(error_code=code, producer_id=self.identities, producer_epoch=0)

    async def send(self, node: int, request: Any, *, apart: bool = False) -> Any:
        if isinstance(request, FetchRequest):
            return await self._fetch(node, request)
        if isinstance(request, OffsetRequest):
            ((topic, [(partition, which)]),) = request._topics
            offset = self.first if which == -2 else self.end
            return SimpleNamespace(topics=[(topic, [(partition, 0, -1, offset)])])
        assert isinstance(request, ProduceRequest)
        exchange = Exchange(node, request)
        self.exchanges.append(exchange)
        codes = await exchange.answer
        return SimpleNamespace(topics=[("requests", [(slot, code, 0, -1, 0) for slot, code in codes.items()])])

    async def _fetch(self, node: int, request: FetchRequest) -> Any:
        ((topic, [(partition, offset, _)]),) = request._topics
        self.fetches.put_nowait((node, offset))
        answer = await self.fetched.get()
        if isinstance(answer, Exception):
            raise answer
        code, end, data = answer
        return SimpleNamespace(topics=[(topic, [(partition, code, end, end, data)])])

    def sent(self) -> list[dict[int, list[bytes]]]:
        return [exchange.values for exchange in self.exchanges]


def future_of(waiter: Waiter[bytes]) -> asyncio.Future[Any]:
    """What `waiter` below, and tests of their own, have as its receiver."""
    assert isinstance(waiter.receiver, asyncio.Future)
    return waiter.receiver


def waiter(name: bytes, slot: int = 0, repeatable: bool = False) -> Waiter[bytes]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    return Waiter(name, slot, name, future, True, repeatable, 0.0, 1e9)


async def turns(number: int = 20) -> None:
    """Lets everything happen that can."""
    for _ in range(number):
        await asyncio.sleep(0)
