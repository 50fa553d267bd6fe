"""What strangers can send to a cluster's ports and put into its topics, all at once under steady load, and then
recoveries that read it: every request is answered, once, and no generation ends because of it.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions, SteadyLoad, audit, chaos_requests
from proof.cluster.faults import APP
from styx.cli.facts_client import fetch_status
from styx.client.connect import connect
from styx.cluster.coordinator.status import Status
from styx.kafka.session import KafkaSession
from styx.kafka.topics import Topics
from styx.kafka.wire import Produce
from styx.messages import Request, encode_request
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, encode
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport.listener import UNAUTHENTICATED_MAX
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

HALF_OPEN = 200
"""At each port, and as many more as are let into a handshake at once."""
FORGED = 1_000_000
"""A generation that nobody has begun."""
MIB = 1024 * 1024
CRC_AT, ATTRIBUTES_AT, OFFSET_DELTA_AT = 17, 21, 64
"""In a batch; the last one in its first record."""
SECONDS_MAX = PATIENCE_SECONDS


class Unpickled:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, ...]]:
        return print, ("UNPICKLED",)


PICKLE = pickle.dumps(Unpickled())
GARBAGE = (
    b"",
    PICKLE,
    os.urandom(300),
    b"\x91" * 100_000,  # arrays in arrays
    b"\xdd\xff\xff\xff\xff",  # an array that says it has 2**32 - 1 items
    b"\xdf\xff\xff\xff\xff",  # a map
    b"\x97\xdb\xff\xff\xff\xff",  # a string
    msgspec.msgpack.encode([1, 2, 3]),
)


def requests() -> list[bytes | None]:
    """Records for the requests: what is none, and what is one but costs only itself."""
    good = Request(secrets.token_hex(8), "account", "nobody", "run", msgspec.msgpack.encode([]))
    strange = [
        msgspec.structs.replace(good, request_id=secrets.token_hex(8), **changes)
        for changes in (
            {"operator": "o" * (3 * MIB)},
            {"function": "f" * (3 * MIB)},
            {"key": "k" * (3 * MIB)},
            {"params": b"\x91" * 100_000},
            {"params": bytes(6 * MIB)},
            {"idempotency_key": "i" * (3 * MIB)},
            {"reply_to": -7},
            {"reply_to": 2**63},
        )
    ]
    long_id = msgspec.structs.replace(good, request_id="r" * (5 * MIB))
    return [None, *GARBAGE, bytes(8 * MIB - 8192), *map(encode_request, [*strange, long_id])]


async def hello_of_tls(port: int) -> None:
    context = ssl.create_default_context()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", port, ssl=context)


async def noise(port: int, data: bytes) -> None:
    """Sends it, and waits for the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(SECONDS_MAX):
            while await reader.read(4096):
                pass
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def half_open(ports: list[int]) -> AsyncIterator[None]:
    """Connections that never say anything, or never say all of it."""
    made = await asyncio.gather(
        *(asyncio.open_connection("127.0.0.1", port) for port in ports for _ in range(HALF_OPEN))
    )
    for number, (_, writer) in enumerate(made):
        writer.write(b"\0\0"[: number % 3])
    yield
    for _, writer in made:
        writer.close()


async def at_ports(ports: list[int]) -> None:
    prefix = (1 << 30).to_bytes(4, "big")
    sent = (os.urandom(4096), PICKLE, prefix + b"x", b"GET / HTTP/1.1\r\n\r\n")
    tried: list[Awaitable[None]] = [noise(port, data) for port in ports for data in sent]
    await asyncio.gather(*tried, *map(hello_of_tls, ports))


def strange_batches() -> list[bytes]:
    """What a broker takes, since it checks neither: a header whose name is no text, and an offset far ahead."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, MIB)
    # Of now: a broker releases a segment of replies that holds records of long ago only.
    builder.append(0, time.time_ns() // 1_000_000, None, b"?", [("name", b"")])
    header, offset = builder.build(), builder.build()
    header[header.index(b"name")] = 0xFF
    offset[OFFSET_DELTA_AT] = 126
    for data in header, offset:
        data[CRC_AT:ATTRIBUTES_AT] = calc_crc32c(bytes(data[ATTRIBUTES_AT:])).to_bytes(4, "big")
    return [bytes(header), bytes(offset)]


async def as_batches(kafka: str, topics: Topics, slots: int) -> None:
    session = KafkaSession(kafka)
    await session.open(topics)
    try:
        places = [(topics.requests, slot) for slot in range(slots)] + [(topics.replies, 0), (topics.epochs, 0)]
        for topic, partition in places:
            for batch in strange_batches():
                node = session.leader(topic, partition)
                assert node is not None
                answer = await session.send(node, Produce(None, -1, 10_000, [(topic, [(partition, batch)])]))
                ((_, ((_, code, *_),)),) = answer.topics
                assert code == 0
    finally:
        await session.close()


async def into_topics(kafka: str, topics: Topics, slots: int) -> None:
    await as_batches(kafka, topics, slots)
    producer = AIOKafkaProducer(bootstrap_servers=kafka, max_request_size=9 * MIB)
    compressing = AIOKafkaProducer(bootstrap_servers=kafka, max_request_size=9 * MIB, compression_type="gzip")
    forged = [encode(GenerationMarker(FORGED, -1)), encode(EpochRecord(FORGED, 0, 0, []))]
    await producer.start()
    await compressing.start()
    try:
        for number, value in enumerate(requests()):
            await producer.send_and_wait(topics.requests, value, None if value else b"?", number % slots)
            await compressing.send_and_wait(topics.requests, value, None if value else b"?", (number + 1) % slots)
        for value in (None, *GARBAGE, *forged):
            await producer.send_and_wait(topics.epochs, value, b"?", 0)
            await producer.send_and_wait(topics.externals, value, b"?", 0)
            await producer.send_and_wait(topics.replies, value, b"?", 0, headers=[("tid", b"\1" * 9)])
            await producer.send_and_wait(topics.replies, value, partition=0, key=b"\xff", headers=[("tid", None)])
            await producer.send_and_wait(topics.directory, value, b"routing", 0)
    finally:
        await producer.stop()
        await compressing.stop()


async def status_of(cluster: ClusterUnderTest) -> Status:
    return await asyncio.to_thread(fetch_status, f"http://127.0.0.1:{cluster.facts_port}")


async def status_when(cluster: ClusterUnderTest, holds: Callable[[Status], bool]) -> Status:
    """Workers tell of themselves now and then: waits until they have told enough."""
    async with asyncio.timeout(SECONDS_MAX):
        while not holds(status := await status_of(cluster)):  # noqa: ASYNC110 - a process is no event source
            await asyncio.sleep(0.1)
    return status


def all_is_counted(status: Status) -> bool:
    refused = min([status.refused, *(worker.refused for worker in status.workers)])
    return refused >= HALF_OPEN - UNAUTHENTICATED_MAX and sum(worker.poison for worker in status.workers) > len(GARBAGE)


def all_passed_over(status: Status) -> bool:
    return min((worker.strangers for worker in status.workers), default=0) > len(GARBAGE)


async def recover(cluster: ClusterUnderTest, load: SteadyLoad) -> None:
    """A worker dies, and then everything: whoever comes after them reads all that stands in the topics."""
    victim = cluster.workers[0]
    assert victim is not None
    await victim.kill()
    await cluster.start_worker(0)
    await load.next_reply(SECONDS_MAX)
    for child in (cluster.coordinator, *cluster.workers):
        assert child is not None
        await child.kill()
    await cluster.start_coordinator()
    for place in range(cluster.options.workers):
        await cluster.start_worker(place)
    await load.next_reply(SECONDS_MAX)


def test_hostile_inputs(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> None:
    name = f"hostile-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app=APP,
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path,
        slots=4,
        silence_s=60.0,  # on a busy machine, too, only strangers could begin a new generation
    )
    assert HALF_OPEN > UNAUTHENTICATED_MAX

    async def run() -> None:
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            ports = [cluster.coordinator_port, *cluster.worker_ports]
            rng = Random(name)
            async with cluster.client() as client:
                requests = chaos_requests(rng, cluster.options.slots)
                load = SteadyLoad(client, None, dict(cluster.app.operators), requests, LoadOptions(50.0, 0.5, 0.0), rng)
                load.start()
                await load.next_reply(SECONDS_MAX)
                before = await status_of(cluster)
                async with half_open(ports):
                    await asyncio.gather(at_ports(ports), into_topics(kafka.bootstrap, cluster.topics, options.slots))
                    await load.next_reply(SECONDS_MAX)
                    after = await status_when(cluster, all_is_counted)
                cluster.check()
                assert (after.phase, after.generation) == ("running", before.generation)
                async with connect(cluster.url, name):
                    pass  # the directory topic still says how to route
                await recover(cluster, load)
                await load.stop()
            recovered = await status_when(cluster, all_passed_over)
            cluster.check()
            assert recovered.generation < FORGED
            assert not load.contradictions
            found = await audit(cluster, load.replies)
            assert found.garbage > 0

    asyncio.run(run())
    for log in tmp_path.glob("*.log"):
        text = log.read_text("utf-8", "replace")
        assert "UNPICKLED" not in text
        assert "Traceback" not in text
