"""Garbage for every topic of an app. Any program that reaches the broker can append it."""

from __future__ import annotations

import os
import pickle
import secrets
from collections.abc import Callable
from typing import Final

import msgspec
from aiokafka import AIOKafkaProducer

from styx.kafka.address import parse_kafka_url
from styx.kafka.topics import TID_HEADER, topics_of
from styx.messages import Request, encode_request
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, encode

MIB: Final = 1024 * 1024
FORGED: Final = 1_000_000
"""A generation that no coordinator has begun."""


class _Unpickled:
    """An object that reports if it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, ...]]:
        return print, ("UNPICKLED",)


def garbage() -> list[bytes | None]:
    """Payloads that cannot be decoded as records."""
    return [
        None,
        b"",
        pickle.dumps(_Unpickled()),
        os.urandom(300),
        b"\x91" * 100_000,  # arrays in arrays
        b"\xdd\xff\xff\xff\xff",  # an array that says it has 2**32 - 1 items
        b"\xdf\xff\xff\xff\xff",
        b"\x97\xdb\xff\xff\xff\xff",
        msgspec.msgpack.encode([1, 2, 3]),
        encode(GenerationMarker(FORGED, -1)),
        encode(EpochRecord(FORGED, 0, 0, [])),
    ]


def strange_requests() -> list[bytes]:
    """Records that are requests over a limit, or for unknown operators."""
    good = Request(secrets.token_hex(8), "none", "nobody", "none", b"\x90")
    changes: list[dict[str, object]] = [
        {},
        {"operator": "o" * (3 * MIB)},
        {"function": "f" * (3 * MIB)},
        {"key": "k" * (3 * MIB)},
        {"key": ["a"] * 100_000},
        {"params": b"\x91" * 100_000},
        {"params": bytes(6 * MIB)},
        {"idempotency_key": "i" * (3 * MIB)},
        {"request_id": "r" * (5 * MIB)},
        {"reply_to": -7},
        {"reply_to": 2**63},
    ]
    return [encode_request(msgspec.structs.replace(good, **each)) for each in changes]


async def fill(url: str, app: str) -> str:
    """Appends the garbage to the topics of `app`. Raises aiokafka's errors, and `ConfigurationError`."""
    address = parse_kafka_url(url)
    topics, count = topics_of(app), 0
    producer = AIOKafkaProducer(**address.options(), max_request_size=9 * MIB)
    await producer.start()
    try:
        partitions = sorted(await producer.partitions_for(topics.requests))
        for number, value in enumerate([*garbage(), *strange_requests()]):
            await producer.send_and_wait(topics.requests, value, b"?", partitions[number % len(partitions)])
            count += 1
        for value in garbage():
            tids: list[tuple[str, bytes | None]] = [(TID_HEADER, b"\1" * 9), (TID_HEADER, None)]
            await producer.send_and_wait(topics.epochs, value, b"?", 0)
            await producer.send_and_wait(topics.externals, value, b"?", 0)
            await producer.send_and_wait(topics.replies, value, b"\xff", 0, headers=tids)
            await producer.send_and_wait(topics.directory, value, b"routing", 0)
            count += 4
    finally:
        await producer.stop()
    return f"{count} records that are none"
