"""The directory topic of an app, for clients that know only the app's name: one record, the routing table.

The topic is compacted; the newest record with the key `ROUTING_KEY` counts.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from styx.errors import ConfigurationError, NotSent
from styx.kafka.address import KafkaAddress
from styx.kafka.topics import ROUTING_KEY, topics_of
from styx.schema.description import RoutingTable, decode_routing_table

READ_SECONDS_MAX: Final = 10.0
"""How long reading or writing the directory may take."""
_POLL_SECONDS: Final = 1.0
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)


async def read_routing_table(address: KafkaAddress, app_name: str) -> RoutingTable:
    """The routing table published last.

    Raises `NotSent`, or `ConfigurationError` if there is none or it cannot be read.
    """
    topic = topics_of(app_name).directory
    consumer = AIOKafkaConsumer(**address.options(), auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            await consumer.start()
            found = await _newest(consumer, TopicPartition(topic, 0))
    except (KafkaError, OSError) as error:
        raise NotSent(f"the topic {topic} cannot be read: {error or 'no answer'}") from None
    finally:
        await stop_consumer(consumer)
    if found is None:
        raise ConfigurationError(
            f"the topic {topic} says nothing about the app {app_name!r}: is it deployed? "
            "Until then, connect with the App instead of its name"
        )
    if isinstance(found, RoutingTable):
        return found
    raise ConfigurationError(
        f"the routing table in the topic {topic} cannot be read: {found}. Start the coordinator again, which writes it "
        "anew, or connect with the App instead of its name"
    )


async def publish_routing_table(address: KafkaAddress, table: RoutingTable) -> None:
    """Makes `table` the one that clients read; raises `NotSent`."""
    topic = topics_of(table.app).directory
    producer = AIOKafkaProducer(**address.options(), acks="all", enable_idempotence=True)
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            await producer.start()
            await producer.send_and_wait(topic, key=ROUTING_KEY, value=table.encode(), partition=0)
    except (KafkaError, OSError) as error:
        raise NotSent(f"the topic {topic} cannot be written: {error or 'no answer'}") from None
    finally:
        await producer.stop()


async def _newest(consumer: AIOKafkaConsumer, place: TopicPartition) -> RoutingTable | Exception | None:
    """The newest table; if there is none that can be read, why the newest record cannot; None without any."""
    consumer.assign([place])
    end = (await consumer.end_offsets([place]))[place]
    newest: RoutingTable | Exception | None = None
    while await consumer.position(place) < end:
        for records in (await consumer.getmany(timeout_ms=int(_POLL_SECONDS * 1000))).values():
            for record in records:
                if record.key != ROUTING_KEY:
                    continue
                try:
                    newest = decode_routing_table(record.value or b"")
                except _UNREADABLE as error:
                    # A stranger's: that does not take back the one before it.
                    newest = newest if isinstance(newest, RoutingTable) else error
    return newest


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
