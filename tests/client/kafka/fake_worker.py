"""A worker without state, epochs or order: it answers each request record of an app as its function's name says."""

import asyncio
from collections import Counter
from types import TracebackType
from typing import Any, Self

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from styx.kafka.topics import ensure_topics, topics_of
from styx.messages import ReplyRecord, Request, decode_request, encode_reply

REPLY_PARTITIONS = 4


async def create_topics(bootstrap: str, app: str, n_slots: int = 4) -> None:
    """The topics that a deployment has."""
    await ensure_topics(bootstrap, topics_of(app), n_slots, REPLY_PARTITIONS)


class FakeWorker:
    """Answers requests from its start on; `runs` counts them by request id, `slots` says where each was run last."""

    def __init__(self, bootstrap: str, app: str, n_slots: int = 4) -> None:
        self.runs: Counter[str] = Counter()
        self.slots: dict[str, int] = {}
        self.app = app
        self._bootstrap = bootstrap
        self._n_slots = n_slots
        self._tid = 0

    async def __aenter__(self) -> Self:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, acks="all", enable_idempotence=True, max_batch_size=1024 * 1024
        )
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, auto_offset_reset="earliest", max_partition_fetch_bytes=4 * 1024 * 1024
        )
        await self._producer.start()
        await self._consumer.start()
        self._consumer.assign([TopicPartition(topics_of(self.app).requests, slot) for slot in range(self._n_slots)])
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            await self._consumer.stop()
        except asyncio.CancelledError:
            # aiokafka lets through the cancellation of a fetch that waits for its next attempt, and leaves its client
            # open.
            await self._consumer._client.close()
        await self._producer.stop()

    async def _work(self) -> None:
        while True:
            fetched = await self._consumer.getmany(timeout_ms=1000, max_records=1000)
            by_partition: dict[int, list[ReplyRecord]] = {}
            for place, records in fetched.items():
                for record in records:
                    request = decode_request(record.value)
                    for reply in self._answers(request, place.partition):
                        by_partition.setdefault(reply.reply_to, []).append(reply)
            for partition, replies in by_partition.items():
                await self._send(partition, replies)

    async def _send(self, partition: int, replies: list[ReplyRecord]) -> None:
        topic = topics_of(self.app).replies
        batch = self._producer.create_batch()
        for reply in replies:
            record: dict[str, Any] = {
                "key": reply.request_id.encode(),
                "value": encode_reply(reply),
                "timestamp": None,
                "headers": [("tid", reply.sequence.to_bytes(8, "big"))],
            }
            if batch.append(**record) is None:
                await self._producer.send_batch(batch, topic, partition=partition)
                batch = self._producer.create_batch()
                assert batch.append(**record) is not None
        await self._producer.send_batch(batch, topic, partition=partition)

    def _answers(self, request: Request, slot: int) -> list[ReplyRecord]:
        """The replies to a request: none for `silent`, two for `twice`."""
        self._tid += 1
        self.runs[request.request_id] += 1
        self.slots[request.request_id] = slot
        result, error = request.params, None
        if request.function == "fail":
            result, error = b"", ("aborted", "OutOfStock", "no more")
        elif request.function == "slot":
            result = msgspec.msgpack.encode(slot)
        elif request.function == "lives_on_3" and slot != 3:
            result, error = b"", ("bad_arguments", "WrongPartition", f"key {request.key!r} belongs to partition 3")
        elif request.function == "lives_nowhere":
            where = (slot + 1) % self._n_slots
            result, error = b"", ("bad_arguments", "WrongPartition", f"it belongs to partition {where}")
        reply = ReplyRecord(request.request_id, self._tid, self._tid, 7, 1, result, error, request.reply_to)
        return [reply] * {"silent": 0, "twice": 2}.get(request.function, 1)
