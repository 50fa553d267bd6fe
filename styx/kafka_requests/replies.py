"""One partition of the replies, read from its end on, forever. It decodes nothing and knows no request.

It reads uncommitted records: workers keep a transaction open only to fence each other, and a reply in the topic stands.
Kafka away means waiting; reading goes on at its offset. If the broker has lost that offset, it goes on at the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord

from styx.kafka_requests.errors import KafkaUnreachable
from styx.kafka_requests.producer import CONNECT_SECONDS, REQUEST_TIMEOUT_SECONDS, RETRY_SECONDS, OnEnd
from styx.log.kafka.address import KafkaAddress
from styx.log.kafka.closed_connections import drop_closed_connections

REPLIES_BATCH_MAX: Final = 1_000
"""Replies handled between two turns of the event loop."""
FETCH_BYTES_MAX: Final = 4 * 1024 * 1024
"""One fetch; a single larger record is still delivered."""
POLL_SECONDS: Final = 60.0
"""How long one wait for replies may last; it ends with the first of them."""

_log = logging.getLogger("styx.kafka_requests")

Records = Sequence[ConsumerRecord[bytes, bytes]]


class ReplyReader:
    """Gives the records of one partition to `deliver`, many at once.

    `on_end` is told when its task ends, which without `close` is a fault.
    """

    def __init__(
        self, address: KafkaAddress, topic: str, partition: int, deliver: Callable[[Records], None], on_end: OnEnd
    ) -> None:
        self._partition = TopicPartition(topic, partition)
        self._deliver = deliver
        self._on_end = on_end
        self._task: asyncio.Task[None] | None = None
        self._consumer = AIOKafkaConsumer(
            **address.options(),
            auto_offset_reset="latest",
            enable_auto_commit=False,
            fetch_max_bytes=FETCH_BYTES_MAX,
            max_partition_fetch_bytes=FETCH_BYTES_MAX,
            request_timeout_ms=REQUEST_TIMEOUT_SECONDS * 1000,
            retry_backoff_ms=int(RETRY_SECONDS * 1000),
        )
        drop_closed_connections(self._consumer._client)

    async def start(self) -> None:
        """Connects, and returns once it stands at the end: every later record is delivered.

        Raises `KafkaUnreachable`.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._consumer.start()
                self._consumer.assign([self._partition])
                ends = await self._consumer.end_offsets([self._partition])
                self._consumer.seek(self._partition, ends[self._partition])
        except BaseException as error:
            await stop_consumer(self._consumer)
            if not isinstance(error, KafkaError | OSError):
                raise
            raise KafkaUnreachable(f"the replies topic cannot be read: {error or 'no answer'}") from None
        self._task = asyncio.create_task(self._read())
        self._task.add_done_callback(self._on_end)

    async def close(self) -> None:
        """Ends reading and disconnects."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await stop_consumer(self._consumer)

    async def _read(self) -> None:
        while True:
            try:
                fetched = await self._consumer.getmany(
                    timeout_ms=int(POLL_SECONDS * 1000), max_records=REPLIES_BATCH_MAX
                )
            except KafkaError as error:
                _log.warning("replies cannot be read (%s); trying again", error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for records in fetched.values():
                self._deliver(records)
            # Records that are there already are given without waiting: others must have their turn.
            await asyncio.sleep(0)


async def stop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Stops a consumer, also while Kafka is away."""
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # aiokafka lets through the cancellation of a fetch that waits for its next attempt, and leaves its client open.
        await consumer._client.close()
