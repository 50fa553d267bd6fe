"""The topics of an app's events, one for each: their names, their settings, and their creation.

Other people's programs read them. A topic is made with its event, and never deleted or changed here: whoever runs the
cluster may give it another retention, and decides about the topic of an event that the app no longer has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from aiokafka.protocol.metadata import MetadataRequest

from styx.errors import ConfigurationError
from styx.kafka.address import KafkaAddress
from styx.kafka.session import KafkaSession
from styx.kafka.topics import CREATE_SECONDS_MAX, MESSAGE_BYTES_MAX, TopicSettings, ensure, replicas_of, topics_of
from styx.model.event_topic import event_topic_name

EVENTS_RETENTION: Final = timedelta(days=7)
"""How long a new topic keeps its events, unless the event says `keep=`."""
TOPIC_NAME_MAX: Final = 249
"""Characters of a topic's name that Kafka allows."""


def event_topic(app: str, event: str) -> str:
    """The topic of an event. Raises `ConfigurationError` if the two names are too long together."""
    name = event_topic_name(app, event)
    if len(name) > TOPIC_NAME_MAX:
        raise ConfigurationError(
            f"event {event!r} of app {app!r} would have the Kafka topic {name}, of {len(name)} characters; Kafka "
            f"allows {TOPIC_NAME_MAX}: give the event a shorter name"
        )
    return name


def event_settings(n_slots: int, keep: timedelta = EVENTS_RETENTION) -> TopicSettings:
    """How the topic of an event is created: a partition for each slot."""
    return TopicSettings(
        n_slots,
        {
            "max.message.bytes": str(MESSAGE_BYTES_MAX),
            "cleanup.policy": "delete",
            "compression.type": "uncompressed",
            "retention.ms": str(max(1, keep // timedelta(milliseconds=1))),
            "retention.bytes": "-1",
        },
    )


async def ensure_event_topics(
    address: KafkaAddress | str,
    app: str,
    events: Collection[str],
    n_slots: int,
    keep: Mapping[str, timedelta] = MappingProxyType({}),
) -> dict[str, str]:
    """Creates the missing topics, with as many replicas as the app's other topics have; `keep` says by event how long
    one keeps its events. Returns the topics by event.

    Raises as `ensure_topics`.
    """
    by_event = {event: event_topic(app, event) for event in events}
    session = KafkaSession(address)
    try:
        async with asyncio.timeout(CREATE_SECONDS_MAX):
            await session.open()
            replication = await replicas_of(session, topics_of(app).externals)
            kept = {event: keep.get(event, EVENTS_RETENTION) for event in by_event}
            wanted = {topic: event_settings(n_slots, kept[event]) for event, topic in by_event.items()}
            await ensure(session, wanted, replication)
    except TimeoutError:
        raise TimeoutError(
            f"{session} gave the topics of the app's events no leaders within {CREATE_SECONDS_MAX} s"
        ) from None
    finally:
        await session.close()
    return by_event


async def existing_event_topics(address: KafkaAddress | str, app: str) -> list[str]:
    """The topics of events that the app has, or had. Raises as `existing_topics`."""
    session = KafkaSession(address)
    try:
        async with asyncio.timeout(CREATE_SECONDS_MAX):
            await session.open()
            answer = await session.send_anywhere(MetadataRequest(None, allow_auto_topic_creation=False))
            return sorted(name for _, name, _, _ in answer.topics if name.startswith(_prefix(app)))
    except TimeoutError:
        raise TimeoutError(f"{session} did not say within {CREATE_SECONDS_MAX} s which topics it has") from None
    finally:
        await session.close()


def _prefix(app: str) -> str:
    return event_topic_name(app, "")
