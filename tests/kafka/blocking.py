"""Records of the tests, and reading them back from a thread, as recovery does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from styx.kafka.appends import NewRecord
from styx.kafka.reader import KafkaReader
from styx.log.base import Record, Stream

T = TypeVar("T")


def record(number: int) -> NewRecord:
    """Its payload, and its TID, is the number."""
    return None, b"%d" % number, [("tid", number.to_bytes(8, "big"))]


def records(numbers: Iterable[int]) -> list[NewRecord]:
    return [record(number) for number in numbers]


def numbers(read: Iterable[Record]) -> list[int]:
    return [int(each.payload) for each in read]


async def in_thread(function: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, function)


async def read_all(reader: KafkaReader, stream: Stream, partition: int, first_offset: int = 0) -> list[Record]:
    return await in_thread(lambda: list(reader.read(stream, partition, first_offset)))
