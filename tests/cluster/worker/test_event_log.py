"""Events under way: gathered for each transaction, in order, held back when there are many, and counted only when they
are committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from styx import Event
from styx.cluster.worker import event_log
from styx.cluster.worker.event_log import EventLog
from styx.kafka.appender import Appender
from styx.messages import EventRecord

pytestmark = pytest.mark.anyio

PAID: Event[int] = Event("paid", int)
MOVED: Event[int] = Event("moved", int)


class FakeAppender:
    """Appends and commits when it is told to."""

    def __init__(self) -> None:
        self.appended: list[tuple[str, int, list[Any], asyncio.Future[int]]] = []
        self.commits: list[Callable[[], None]] = []
        self.aborted = False

    def append(self, topic: str, partition: int, records: Sequence[Any]) -> asyncio.Future[int]:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.appended.append((topic, partition, list(records), future))
        return future

    def commit(self, then: Callable[[], None]) -> None:
        self.commits.append(then)

    def abort(self) -> None:
        self.aborted = True

    def acknowledge(self, number: int, end: int) -> None:
        self.appended[number][3].set_result(end)


class World:
    """A log, what was lost of it, and its counters."""

    def __init__(self) -> None:
        self.appender = FakeAppender()
        self.lost: list[BaseException] = []
        self.counts: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        appender = cast(Appender, self.appender)
        events: dict[str, Event[Any]] = {"paid": PAID, "moved": MOVED}
        self.log = EventLog(appender, events, self.lost.append, self.counts, self.bytes)
        self.log.topics = {"paid": "T.paid", "moved": "T.moved"}

    def emit(self, *numbers: int, slot: int = 1, event: str = "paid") -> None:
        records = [
            EventRecord(f"id{number}", event, 1, 5, 1, number, "shop", "a", 7, PAID.encode(number), slot)
            for number in numbers
        ]
        self.log.emit(slot, records)

    async def committing(self, number: int) -> None:
        """An event that is in the log at offset 8, and whose transaction is being committed."""
        self.emit(number)
        await some_passes()
        self.appender.acknowledge(0, 9)
        await some_passes()
        assert len(self.appender.commits) == 1


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(event_log, "COMMIT_SECONDS", 0.0)
    return World()


async def some_passes() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


def values(world: World) -> list[tuple[str, int, list[bytes | None]]]:
    return [(topic, slot, [value for _, value, _ in records]) for topic, slot, records, _ in world.appender.appended]


async def test_events_of_a_slot_go_to_its_partition_of_their_topics_in_order(world: World) -> None:
    world.emit(1, 2)
    world.emit(3, event="moved", slot=2)
    world.log.mark([1, 2], 5)
    await some_passes()
    assert values(world) == [
        ("T.paid", 1, [b"1", b"2", None]),
        ("T.moved", 2, [b"3", None]),
        ("T.paid", 2, [None]),
        ("T.moved", 1, [None]),
    ]
    assert world.counts == {"paid": 2, "moved": 1}
    assert world.bytes.keys() == {"paid", "moved"}


async def test_records_gather_until_their_transaction_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "COMMIT_SECONDS", 3600.0)
    world = World()
    world.emit(1)
    world.emit(2)
    await some_passes()
    assert values(world) == []
    monkeypatch.setattr(event_log, "GATHERED_BYTES_MAX", world.log.waiting_bytes + 1)
    world.emit(3)
    await some_passes()
    assert values(world) == [("T.paid", 1, [b"1", b"2", b"3"])], "they are enough for an exchange"
    world.appender.acknowledge(0, 3)
    await some_passes()
    assert world.appender.commits == [], "no commit is due"


async def test_what_is_appended_counts_when_it_is_committed(world: World) -> None:
    told: list[str] = []
    world.log.when_durable(lambda: told.append("nothing"))
    world.emit(1)
    assert world.log.waiting_bytes > 0
    world.log.when_durable(lambda: told.append("one"))
    await some_passes()
    assert world.appender.commits == [], "it is not in the log"
    world.appender.acknowledge(0, 9)
    await some_passes()
    assert (told, world.log.ends) == (["nothing"], {})
    [commit] = world.appender.commits
    commit()
    await some_passes()
    assert told == ["nothing", "one"]
    assert (world.log.ends, world.log.waiting_bytes) == ({("paid", 1): 9}, 0)
    assert world.log.ends_of(1) == {"paid": 9, "moved": 0}


async def test_what_comes_amid_a_commit_waits_for_the_next_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "GATHERED_BYTES_MAX", 1)
    told: list[str] = []
    await world.committing(1)
    world.emit(2)
    world.log.when_durable(lambda: told.append("two"))
    await some_passes()
    assert values(world) == [("T.paid", 1, [b"1"])]
    world.appender.commits[0]()
    await some_passes()
    assert (world.log.ends, told) == ({("paid", 1): 9}, [])
    assert values(world) == [("T.paid", 1, [b"1"]), ("T.paid", 1, [b"2"])]
    world.appender.acknowledge(1, 10)
    await some_passes()
    world.appender.commits[1]()
    await some_passes()
    assert (world.log.ends, told) == ({("paid", 1): 10}, ["two"])


async def test_many_bytes_are_held_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "QUEUED_BYTES_MAX", 1)
    for slot in range(4):
        world.emit(slot, slot=slot)
    await some_passes()
    for slot in range(4):
        assert len(world.appender.appended) == slot + 1
        assert world.appender.commits == [], "some of the transaction has not left"
        world.appender.acknowledge(slot, 1)
        await some_passes()
    assert [written for _, _, written in values(world)] == [[b"0"], [b"1"], [b"2"], [b"3"]]
    world.appender.commits[0]()
    assert world.log.ends == {("paid", slot): 1 for slot in range(4)}


async def test_an_event_that_cannot_be_appended_is_lost_with_a_word(world: World) -> None:
    told: list[str] = []
    world.emit(1)
    world.log.when_durable(lambda: told.append("never"))
    await some_passes()
    world.appender.appended[0][3].set_exception(OSError("no"))
    await some_passes()
    assert [str(error) for error in world.lost] == ["no"]
    assert (told, world.appender.commits) == ([], [])


async def test_a_log_that_has_ended_tells_nobody(world: World) -> None:
    told: list[str] = []
    await world.committing(1)
    world.log.when_durable(lambda: told.append("never"))
    world.emit(2)
    world.log.end()
    world.appender.commits[0]()
    await some_passes()
    assert (told, world.log.ends, world.appender.aborted) == ([], {}, True)
    assert values(world) == [("T.paid", 1, [b"1"])]
