"""Fencing on a real broker: after it, a former owner appends nothing, whatever it had queued or on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from styx.kafka.appender import Appender
from styx.kafka.errors import Fenced
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import Topics
from styx.kafka.transaction import ProducerIdentity, fence
from styx.log.base import Stream
from tests.kafka.blocking import in_thread, numbers, read_all, record, records
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.parametrize("in_transaction", [True, False])
async def test_a_zombie_appends_nothing_that_it_has_queued(
    kafka: RealKafka,
    owner_of: Callable[[str], Appender],
    reader: KafkaReader,
    topics: Topics,
    failures: list[BaseException],
    in_transaction: bool,
) -> None:
    zombie = owner_of("worker")
    await zombie.start(topics)
    if in_transaction:
        await zombie.append(topics.epochs, 0, [record(0)])
    asleep = _put_to_sleep(zombie)
    futures = [zombie.append(topics.epochs, 0, [record(1)])]
    await asyncio.sleep(0.05)
    futures += [zombie.append(topics.epochs, 0, [record(2)]), zombie.append(topics.replies, 0, [record(3)])]
    await fence(kafka.bootstrap, [_id(topics)])
    ends = await in_thread(lambda: (reader.bounds(Stream.EPOCHS, 0), reader.bounds(Stream.REPLIES, 0)))
    asleep.set()
    await asyncio.wait(futures)
    assert [type(future.exception()) for future in futures] == [Fenced] * 3
    assert [type(failure) for failure in failures] == [Fenced]
    assert await in_thread(lambda: (reader.bounds(Stream.EPOCHS, 0), reader.bounds(Stream.REPLIES, 0))) == ends
    assert numbers(await read_all(reader, Stream.EPOCHS, 0)) == ([0] if in_transaction else [])


async def test_records_before_the_fence_stand_and_none_comes_after_it(
    kafka: RealKafka, owner_of: Callable[[str], Appender], reader: KafkaReader, topics: Topics
) -> None:
    owners = [owner_of(f"worker{number}") for number in range(4)]
    await asyncio.gather(*(owner.start(topics) for owner in owners))
    futures: dict[int, list[asyncio.Future[int]]] = {slot: [] for slot in range(4)}

    async def busy(owner: Appender, slot: int) -> None:
        for first in range(0, 1_000_000, 10):
            futures[slot].append(owner.append(topics.requests, slot, records(range(first, first + 10))))
            try:
                await asyncio.shield(futures[slot][-1])
            except Fenced:
                return

    running = [asyncio.create_task(busy(owner, slot)) for slot, owner in enumerate(owners)]
    while not all(len(futures[slot]) > 2 for slot in range(4)):  # noqa: ASYNC110 - each begins behind an acknowledged one
        await asyncio.sleep(0.01)
    await fence(kafka.bootstrap, [f"{topics.requests}.worker{number}" for number in range(4)])
    ends = await in_thread(lambda: reader.bounds_of(Stream.REQUESTS))
    await asyncio.gather(*running)
    assert await in_thread(lambda: reader.bounds_of(Stream.REQUESTS)) == ends
    for slot in range(4):
        read = numbers(await read_all(reader, Stream.REQUESTS, slot))
        acknowledged = [future for future in futures[slot] if future.exception() is None]
        assert 0 < 10 * len(acknowledged) <= len(read)
        assert read == list(range(len(read)))


async def test_a_new_owner_goes_on_where_the_former_one_was_fenced(
    owner_of: Callable[[str], Appender], reader: KafkaReader, topics: Topics
) -> None:
    former, new = owner_of("worker"), owner_of("worker")
    await former.start(topics)
    await former.append(topics.epochs, 0, [record(0)])
    await new.start(topics)
    with pytest.raises(Fenced):
        await former.append(topics.epochs, 0, [record(1)])
    await new.append(topics.epochs, 0, [record(2)])
    assert numbers(await read_all(reader, Stream.EPOCHS, 0)) == [0, 2]


async def test_an_identity_that_a_fence_gave_appends_until_the_next_one_whenever_its_owner_comes_to_it(
    kafka: RealKafka, topics: Topics, reader: KafkaReader, failures: list[BaseException]
) -> None:
    (early,) = await fence(kafka.bootstrap, [_id(topics)])
    (late,) = await fence(kafka.bootstrap, [_id(topics)])

    async def appender(identity: ProducerIdentity) -> Appender:
        made = Appender(kafka.bootstrap, transactional_id=_id(topics), identity=identity, on_failure=failures.append)
        await made.start(topics)
        return made

    newer = await appender(late)
    await newer.append(topics.epochs, 0, [record(0)])
    # Its owner was asleep: it begins only now, and must not take over what is no longer its own.
    older = await appender(early)
    with pytest.raises(Fenced):
        await older.append(topics.epochs, 0, [record(1)])
    await newer.append(topics.epochs, 0, [record(2)])
    assert numbers(await read_all(reader, Stream.EPOCHS, 0)) == [0, 2]
    older.abort()
    await newer.stop()


async def test_an_id_that_nobody_had_can_be_fenced(kafka: RealKafka, topics: Topics) -> None:
    await fence(kafka.bootstrap, [_id(topics)])


async def test_a_broker_that_is_away_is_waited_for_and_not_for_ever() -> None:
    with pytest.raises(TimeoutError, match=r"did not fence former appenders within 0\.3 s"):
        await fence("127.0.0.1:1", ["worker"], 0.3)


def _id(topics: Topics) -> str:
    return f"{topics.requests}.worker"


def _put_to_sleep(appender: Appender) -> asyncio.Event:
    """What it sends from now on reaches the broker when the event is set: it had decided to send it long before."""
    awake = asyncio.Event()
    session = appender._session

    async def late(send: Callable[..., Awaitable[Any]], node: int, request: Any, **options: Any) -> Any:
        await awake.wait()
        return await send(node, request, **options)

    session.send = partial(late, session.send)  # type: ignore[method-assign]
    return awake
