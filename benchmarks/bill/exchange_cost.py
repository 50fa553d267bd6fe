"""What an exchange with a broker costs both sides, in turns on one broker: `python -m benchmarks.bill.exchange_cost`.

A round appends a record to some partitions of a topic with 16, and fetches from all of them until the records are
there. Ways differ in one thing each from the one before: aiokafka's streams or `styx.kafka.exchanges`; fetches that
name all partitions, or a fetch session; the broker's usual index of a partition, or an entry for each batch.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.bill.system import used
from benchmarks.driver.processes import listening
from benchmarks.experiments.text_table import text_table
from proof.cluster.services import local_services
from styx.kafka.fetch_session import FetchSession
from styx.kafka.session import KafkaSession
from styx.kafka.topics import TopicSettings, ensure
from styx.kafka.wire import Chunk, Produce, chunks_of

PARTITIONS: Final = 16
RECORD: Final = b"x" * 60
BATCH_BYTES_MAX: Final = 1 << 16
WAIT_MS: Final = 500
WARM_UP_TURNS: Final = 6
USUAL, EACH_BATCH = "usual", "dense"
_INDEX: Final[dict[str, dict[str, str]]] = {USUAL: {}, EACH_BATCH: {"index.interval.bytes": "0"}}

Send = Callable[[Any], Awaitable[Any]]


class Way(NamedTuple):
    """One way of doing a round."""

    name: str
    streams: bool
    sessions: bool
    topic: str


WAYS: Final = (
    Way("aiokafka's streams", True, False, USUAL),
    Way("exchanges", False, False, USUAL),
    Way("and fetch sessions", False, True, USUAL),
    Way("and an index of each batch", False, True, EACH_BATCH),
)


class Figures(NamedTuple):
    """µs of processor time a round."""

    broker: float
    client: float


class Rounds:
    """Rounds of one way, each of `written` partitions."""

    def __init__(self, way: Way, send: Send, written: int) -> None:
        self._way = way
        self._send = send
        self._written = written
        self._next = 0
        self._positions = dict.fromkeys(range(PARTITIONS), 0)
        self._fetching = FetchSession()

    async def start(self) -> None:
        """Goes to the ends."""
        while await self._fetch():
            pass

    async def run(self, number: int) -> None:
        """So many rounds."""
        for _ in range(number):
            places = [(self._next + each) % PARTITIONS for each in range(self._written)]
            self._next += self._written
            entries = [(place, _batch()) for place in places]
            await self._send(Produce(None, -1, 15_000, [(self._way.topic, entries)]))
            came = 0
            while came < self._written:
                came += await self._fetch()

    async def _fetch(self) -> int:
        if not self._way.sessions:
            self._fetching = FetchSession()
        request = self._fetching.fetch(
            self._way.topic, self._positions, wait_ms=WAIT_MS, bytes_max=1 << 20, partition_bytes_max=1 << 18
        )
        if not self._way.sessions:
            request.session = type(request).session
        answer = await self._send(request)
        self._fetching.took(answer)
        chunks: dict[int, Chunk] = {place: chunk for place, chunk in chunks_of(answer).items() if chunk.data}
        for place, chunk in chunks.items():
            self._positions[place] = chunk.next_offset(self._positions[place])
        return len(chunks)


def _batch() -> bytearray:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, BATCH_BYTES_MAX)
    builder.append(0, int(time.time() * 1000), None, RECORD, [])
    data: bytearray = builder.build()
    return data


async def _measure(kafka: str, turns: int, number: int, written: int) -> list[list[str]]:
    session, streams = KafkaSession(kafka), AIOKafkaClient(bootstrap_servers=kafka)
    await session.open()
    await ensure(session, {name: TopicSettings(PARTITIONS, each) for name, each in _INDEX.items()}, 1)
    await streams.bootstrap()
    await streams.set_topics(list(_INDEX))
    node = session._any_broker()

    def by_streams(request: Any) -> Awaitable[Any]:
        return streams.send(node, request)  # type: ignore[no-any-return] # aiokafka has no types

    def by_exchanges(request: Any) -> Awaitable[Any]:
        return session.send(node, request)

    ways = [Rounds(way, by_streams if way.streams else by_exchanges, written) for way in WAYS]
    broker = listening(int(kafka.rpartition(":")[2]))
    found: list[list[Figures]] = [[] for _ in ways]
    for turn in range(-WARM_UP_TURNS, turns):
        for place in range(len(ways)) if turn % 2 else reversed(range(len(ways))):
            before = used(broker), used([os.getpid()])
            await ways[place].run(number)
            theirs, own = used(broker) - before[0], used([os.getpid()]) - before[1]
            if turn >= 0:
                found[place].append(Figures(theirs.cpu_ns / number / 1e3, own.cpu_ns / number / 1e3))
    await streams.close()
    await session.close()
    return [
        [way.name, *(_shown([each[side] for each in of_way], [each[side] for each in found[0]]) for side in range(2))]
        for way, of_way in zip(WAYS, found, strict=True)
    ]


def _shown(values: Sequence[float], first: Sequence[float]) -> str:
    """The median and the range, and the median of the turns' ratios to the first way."""
    times = statistics.median(value / other for value, other in zip(values, first, strict=True))
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f}), {times:.2f} times"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bill.exchange_cost", description=__doc__)
    parser.add_argument("--turns", type=int, default=10, help="of each way (default 10)")
    parser.add_argument("--rounds", type=int, default=300, help="of a turn (default 300)")
    parser.add_argument("--written", type=int, default=3, help="partitions that get a record in a round (default 3)")
    options = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    with local_services() as services:
        lines = asyncio.run(_measure(services.kafka_address, options.turns, options.rounds, options.written))
    print(text_table(["µs of processor time a round", "broker", "client"], lines))
