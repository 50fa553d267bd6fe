"""The topics of one app: their names, their settings, and their creation. Existing topics are never changed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from aiokafka.protocol.admin import CreateTopicsRequest
from aiokafka.protocol.metadata import MetadataRequest

from styx.errors import ConfigurationError
from styx.kafka.address import KafkaAddress
from styx.kafka.errors import (
    NO_ERROR,
    SETTING_REFUSED,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_OR_PARTITION,
    name_of,
    passes,
)
from styx.kafka.offsets import END, list_offsets
from styx.kafka.session import REQUEST_SECONDS, RETRY_SECONDS, KafkaSession
from styx.log.base import Stream

APP_NAME_MAX: Final = 200
"""Characters; Kafka allows 249 for a topic."""
REPLY_PARTITIONS_DEFAULT: Final = 16
MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024
"""One batch as the broker takes it."""
REPLIES_RETENTION_SECONDS: Final = 7 * 24 * 3600
"""Longer than any client waits, and longer than recoveries need replies."""
TID_HEADER: Final = "tid"
"""The header of a reply record with its sequence TID, which is unique: eight bytes, big-endian."""
ROUTING_KEY: Final = b"routing"
"""The key of the directory topic's record with the routing table."""
CREATE_SECONDS_MAX: Final = 30.0
"""How long a new topic may take to get its leaders."""

READ_ON: Final[Mapping[str, str]] = {"index.interval.bytes": "0"}
"""For topics that are read on from their ends in small batches. By default the index of a partition has an entry for
each 4 KiB, and a broker looks through all batches between the entry and the offset of a fetch, one read each.
"""

_APP_NAME: Final = re.compile(r"[A-Za-z0-9_-]++")


class Topics(NamedTuple):
    """Names of an app's topics, from `topics_of`."""

    requests: str
    epochs: str
    replies: str
    externals: str
    directory: str

    def of(self, stream: Stream) -> str:
        """The topic that keeps a stream of the log."""
        return self[_STREAM_FIELDS[stream]]


_STREAM_FIELDS: Final = {Stream.REQUESTS: 0, Stream.EPOCHS: 1, Stream.REPLIES: 2, Stream.EXTERNALS: 3}


def topics_of(app: str) -> Topics:
    """The names for an app. Raises `ConfigurationError` if the app's name cannot be part of a topic's name."""
    if not _APP_NAME.fullmatch(app) or len(app) > APP_NAME_MAX:
        raise ConfigurationError(
            f"The app is called {app!r}; in a cluster its name is part of Kafka topics, so it must be 1 to "
            f"{APP_NAME_MAX} letters, digits, hyphens or underscores (ASCII)."
        )
    return Topics(*(f"styx.{app}.{part}" for part in Topics._fields))


class TopicSettings(NamedTuple):
    """How a topic is created. What is `wished` only saves work, and is left out if the broker refuses it."""

    n_partitions: int
    configuration: Mapping[str, str]
    wished: Mapping[str, str] = {}


def settings(
    topics: Topics, n_slots: int, reply_partitions: int = REPLY_PARTITIONS_DEFAULT
) -> dict[str, TopicSettings]:
    """The settings of each topic, by its name."""
    common = {
        "max.message.bytes": str(MESSAGE_BYTES_MAX),
        "cleanup.policy": "delete",
        # Clients may compress as they like; workers then read one format, and the size of a batch in memory is bounded.
        "compression.type": "uncompressed",
    }
    for_ever = common | {"retention.ms": "-1", "retention.bytes": "-1"}
    return {
        topics.requests: TopicSettings(
            n_slots,
            # The broker's time, so that `ctx.now()` does not depend on a client's clock.
            for_ever | {"message.timestamp.type": "LogAppendTime"},
            READ_ON,
        ),
        topics.epochs: TopicSettings(1, for_ever),
        topics.replies: TopicSettings(
            reply_partitions,
            common | {"retention.ms": str(REPLIES_RETENTION_SECONDS * 1000), "retention.bytes": "-1"},
            READ_ON,
        ),
        topics.externals: TopicSettings(n_slots, for_ever),
        topics.directory: TopicSettings(1, common | {"cleanup.policy": "compact"}),
    }


async def ensure_topics(
    address: KafkaAddress | str,
    topics: Topics,
    n_slots: int,
    reply_partitions: int = REPLY_PARTITIONS_DEFAULT,
    replication: int = 1,
) -> None:
    """Creates the missing topics, and waits until every partition has a leader.

    Raises `ConfigurationError` when an existing topic has another number of partitions or the broker refuses, and
    `ConnectionError` or `TimeoutError`.
    """
    wanted = settings(topics, n_slots, reply_partitions)
    session = KafkaSession(address)
    try:
        async with asyncio.timeout(CREATE_SECONDS_MAX):
            await session.open()
            await ensure(session, wanted, replication)
    except TimeoutError:
        raise TimeoutError(f"{session} gave the topics of the app no leaders within {CREATE_SECONDS_MAX} s") from None
    finally:
        await session.close()


async def ensure(session: KafkaSession, wanted: Mapping[str, TopicSettings], replication: int) -> None:
    """As `ensure_topics`, in a session that is open, for as long as it takes."""
    there = await _described(session, wanted)
    _check(there, wanted)
    missing = {name: each for name, each in wanted.items() if name not in there}
    if missing:
        await _create(session, missing, replication)
    while not all(name in there and there[name].led for name in wanted):
        await asyncio.sleep(RETRY_SECONDS)
        there = await _described(session, wanted)
    # Another process may have created them at the same time.
    _check(there, wanted)
    await _led(session, wanted)


async def replicas_of(session: KafkaSession, topic: str) -> int:
    """How many replicas a topic has, which exists. Raises `ConnectionError` if the broker does not say."""
    answer = await session.send_anywhere(MetadataRequest([topic], allow_auto_topic_creation=False))
    for code, _, _, partitions in answer.topics:
        if code == NO_ERROR and partitions:
            return len(partitions[0][3])
    raise ConnectionError(f"{session} does not show the topic {topic} now")


async def existing_topics(address: KafkaAddress | str, topics: Topics) -> list[str]:
    """The existing topics of the app. Creates nothing. Raises as `ensure_topics`."""
    session = KafkaSession(address)
    try:
        async with asyncio.timeout(CREATE_SECONDS_MAX):
            await session.open()
            return sorted(await _described(session, dict.fromkeys(topics), surely=True))
    except TimeoutError:
        raise TimeoutError(f"{session} did not say within {CREATE_SECONDS_MAX} s which topics it has") from None
    finally:
        await session.close()


class _Topic(NamedTuple):
    n_partitions: int
    led: bool
    """Whether every partition has a leader."""


async def _described(session: KafkaSession, names: Mapping[str, Any], surely: bool = False) -> dict[str, _Topic]:
    """The existing topics among `names`. With `surely`, raises `ConnectionError` if the state of any topic is
    unknown."""
    answer = await session.send_anywhere(MetadataRequest(list(names), allow_auto_topic_creation=False))
    described = {}
    for code, name, _, partitions in answer.topics:
        if code == NO_ERROR:
            described[name] = _Topic(len(partitions), all(each[0] == NO_ERROR for each in partitions))
        elif code != UNKNOWN_TOPIC_OR_PARTITION and not passes(code):
            raise ConfigurationError(f"{session} does not show the topic {name}: {name_of(code)}")
        elif code != UNKNOWN_TOPIC_OR_PARTITION and surely:
            raise ConnectionError(f"{session} does not show the topic {name} now: {name_of(code)}")
    return described


async def _led(session: KafkaSession, wanted: Mapping[str, TopicSettings]) -> None:
    """Waits until the leaders know of their leadership, some time after other brokers announce it."""
    for name in wanted:
        session.track(name)
    while True:
        await session.refresh()
        try:
            await list_offsets(session, [(name, each) for name in wanted for each in session.partitions(name)], END)
            return
        except ConnectionError:
            await asyncio.sleep(RETRY_SECONDS)


def _check(there: Mapping[str, _Topic], wanted: Mapping[str, TopicSettings]) -> None:
    for name, each in wanted.items():
        n_partitions = there[name].n_partitions if name in there else each.n_partitions
        if n_partitions != each.n_partitions:
            raise ConfigurationError(
                f"The topic {name} exists with {n_partitions} partitions, but {each.n_partitions} are "
                "configured. The number is fixed when an app is first deployed: configure the same, or delete all "
                "topics of the app and its snapshots to begin anew, or choose another app name."
            )


def _configured(wanted: TopicSettings, wishing: bool) -> dict[str, str]:
    return {**wanted.configuration, **(wanted.wished if wishing else {})}


async def _create(session: KafkaSession, missing: Mapping[str, TopicSettings], replication: int) -> None:
    wishing = True
    while True:
        topics: list[tuple[Any, ...]] = [
            (name, each.n_partitions, replication, [], list(_configured(each, wishing).items()))
            for name, each in missing.items()
        ]
        answer = await session.send_anywhere(CreateTopicsRequest(topics, int(REQUEST_SECONDS * 1000), False))
        codes = {name: (code, why) for name, code, why in answer.topic_errors}
        again = False
        for name, (code, why) in codes.items():
            if code in (NO_ERROR, TOPIC_ALREADY_EXISTS):
                continue
            if code in SETTING_REFUSED and wishing and missing[name].wished:
                wishing, again = False, True
                break
            if not passes(code):
                raise ConfigurationError(f"{session} cannot create the topic {name}: {why or name_of(code)}")
            again = True
        if not again:
            return
        await asyncio.sleep(RETRY_SECONDS)
