"""What goes into a slot's next batch."""

import pytest
from aiokafka.record.memory_records import MemoryRecords

from styx.client.kafka import slot_lane
from styx.client.kafka.slot_lane import SlotLane
from styx.kafka.transaction import ProducerIdentity
from tests.client.kafka.fake_session import future_of, waiter

pytestmark = pytest.mark.anyio

IDENTITY = ProducerIdentity(7, 0)


def built(lane: SlotLane, identity: ProducerIdentity = IDENTITY) -> list[bytes]:
    lane.build(identity, 5.0)
    return [] if lane.batch is None else [record.value for record in MemoryRecords(bytes(lane.batch)).next_batch()]


async def test_a_full_batch_leaves_the_rest_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_lane, "BATCH_BYTES_MAX", 200)
    lane = SlotLane(0)
    large = waiter(bytes(300))
    lane.waiting += [waiter(b"a" * 50), waiter(b"b" * 50), waiter(b"c" * 50), large]
    assert built(lane) == [b"a" * 50, b"b" * 50]
    lane.acknowledged()
    assert built(lane) == [b"c" * 50]
    lane.acknowledged()
    # One that is larger than a batch has one for itself.
    assert built(lane) == [large.payload]
    assert lane.since_s == 5.0
    lane.acknowledged()
    assert not lane.waiting


async def test_nobody_waits_for_it_any_more() -> None:
    lane = SlotLane(0)
    cancelled, wanted = waiter(b"cancelled"), waiter(b"wanted")
    lane.waiting += [cancelled, wanted]
    future_of(cancelled).cancel()
    assert built(lane) == [b"wanted"]
    lane.acknowledged()
    lane.waiting.append(cancelled)
    assert built(lane) == []
    assert lane.batch is None


async def test_what_may_be_repeated_comes_first() -> None:
    lane = SlotLane(0)
    lane.waiting += [waiter(b"a", repeatable=True), waiter(b"b"), waiter(b"c", repeatable=True)]
    built(lane)
    lane.waiting.append(waiter(b"d"))
    lane.lost()
    assert built(lane, ProducerIdentity(8, 0)) == [b"a", b"c", b"d"]
