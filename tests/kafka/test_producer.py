"""What goes into a partition's next batch; when exchanges and commits begin, and what they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest
from aiokafka.record.memory_records import MemoryRecords

from styx.client.kafka.sender import Requests
from styx.kafka import producer as producer_module
from styx.kafka.appends import Append, Appends
from styx.kafka.producer import EXCHANGE_BYTES_PAUSED, PAUSE_SECONDS_MAX, PAUSE_SHARE, Lane, Pacing, Producer
from styx.kafka.session import KafkaSession
from styx.kafka.transaction import ProducerIdentity, Transaction
from tests.client.kafka.fake_session import FakeSession, future_of, turns, waiter
from tests.kafka.blocking import record

pytestmark = pytest.mark.anyio

NOT_LEADER = 6
BATCH_BYTES_MAX = 1 << 18
IDENTITY = ProducerIdentity(7, 0)


class Coordinated(FakeSession):
    """Takes part in transactions, too: `told` has what its coordinator was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str | list[int]] = []
        self.committed = asyncio.Event()
        """What the answer to a commit waits for."""
        self.adding = 0

    async def transaction_coordinator(self, transactional_id: str) -> int:
        return 5

    async def send(self, node: int, request: Any, *, apart: bool = False) -> Any:
        if not apart:
            return await super().send(node, request)
        if isinstance(request, EndTxnRequest):
            self.told.append("commit")
            await self.committed.wait()
            return SimpleNamespace(error_code=0)
        assert isinstance(request, AddPartitionsToTxnRequest)
        self.adding += 1
        assert self.adding == 1, "a coordinator does not take two at once"
        ((topic, partitions),) = request._topics
        self.told.append(sorted(partitions))
        await turns(3)
        self.adding -= 1
        return SimpleNamespace(errors=[(topic, [(partition, 0) for partition in partitions])])


def _acknowledged(lane: Lane[Appends], offset: int) -> None:
    lane.queue.acknowledged(offset)


class Sending:
    """A producer in a transaction; `append` gives what is told of its end."""

    def __init__(self, session: FakeSession) -> None:
        self.failures: list[BaseException] = []
        self.lanes = [Lane("requests", partition, Appends()) for partition in range(3)]
        self.producer: Producer[Appends] = Producer(
            cast(KafkaSession, session),
            acknowledged=_acknowledged,
            refused=lambda lane, code: False,
            failed=self.failures.append,
            repeated="they are sent again",
            batch_bytes_max=BATCH_BYTES_MAX,
            exchange_bytes_max=2 * BATCH_BYTES_MAX,
        )
        self.producer.identity = IDENTITY
        self.producer.transaction = Transaction(cast(KafkaSession, session), "worker", IDENTITY)

    def append(self, partition: int, value: bytes) -> asyncio.Future[int]:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        lane = self.lanes[partition]
        lane.queue.waiting.append(Append([(None, value, [])], len(value), future))
        if not lane.engaged:
            self.producer.engage(lane)
        return future


@pytest.fixture
def session() -> Coordinated:
    return Coordinated()


@pytest.fixture
async def sending(session: Coordinated, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sending]:
    monkeypatch.setattr(producer_module, "RETRY_SECONDS", 0)
    sending = Sending(session)
    yield sending
    await sending.producer.close()
    assert not sending.failures


async def test_a_partition_is_in_the_transaction_before_its_first_record(
    session: Coordinated, sending: Sending
) -> None:
    sending.append(0, b"a")
    sending.append(1, b"b")
    await turns(2)
    assert (session.told, session.sent()) == ([[0, 1]], [])
    await turns()
    session.exchanges[0].acknowledge()
    sending.append(0, b"c")
    await turns()
    assert session.told == [[0, 1]]
    assert session.sent() == [{0: [b"a"], 1: [b"b"]}, {0: [b"c"]}]


async def test_two_brokers_partitions_are_added_one_after_the_other(session: Coordinated, sending: Sending) -> None:
    session.leaders = {1: 4}
    sending.append(0, b"a")
    sending.append(1, b"b")
    await turns()
    assert sorted(map(str, session.told)) == ["[0]", "[1]"]
    assert len(session.exchanges) == 2


async def test_a_commit_waits_for_what_is_under_way_and_holds_back_what_is_newer(
    session: Coordinated, sending: Sending
) -> None:
    session.leaders = {1: 4}
    sending.append(0, b"a")
    await turns()
    sending.producer.commit()
    # Neither on the same broker nor on another one.
    sending.append(0, b"b")
    sending.append(1, b"c")
    await turns()
    assert (session.told, session.sent()) == ([[0]], [{0: [b"a"]}])
    session.exchanges[0].acknowledge()
    await turns()
    sending.append(2, b"d")
    await turns()
    assert (session.told, session.sent()) == ([[0], "commit"], [{0: [b"a"]}])
    session.committed.set()
    await turns()
    # In the next transaction, of which they are part anew.
    assert sorted(map(str, session.told[2:])) == ["[0, 2]", "[1]"]
    assert sorted(map(str, session.sent()[1:])) == ["{0: [b'b'], 2: [b'd']}", "{1: [b'c']}"]


async def test_what_failed_is_repeated_before_a_commit(session: Coordinated, sending: Sending) -> None:
    sending.append(0, b"a")
    await turns()
    sending.producer.commit()
    session.exchanges[0].acknowledge(slot_0=NOT_LEADER)
    await turns()
    assert (session.told, session.sent()) == ([[0]], 2 * [{0: [b"a"]}])
    session.exchanges[1].acknowledge()
    await turns()
    assert session.told == [[0], "commit"]


async def test_a_transaction_without_records_is_not_committed(session: Coordinated, sending: Sending) -> None:
    sending.producer.commit()
    await turns()
    sending.append(0, b"a")
    await turns()
    assert (session.told, session.sent()) == ([[0]], [{0: [b"a"]}])


async def test_a_partition_that_another_broker_leads_now_is_sent_there(session: Coordinated, sending: Sending) -> None:
    sending.append(0, b"a")
    await turns()
    sending.append(1, b"b")
    session.leaders = {1: 4}
    sending.append(0, b"c")
    session.exchanges[0].acknowledge()
    await turns()
    # The first broker has enough to do for ever; the second one does not wait for that.
    assert [(exchange.node, exchange.values) for exchange in session.exchanges[1:]] == [
        (0, {0: [b"c"]}),
        (4, {1: [b"b"]}),
    ]


async def test_a_producer_that_has_stopped_takes_no_notice_of_an_answer(session: Coordinated, sending: Sending) -> None:
    future = sending.append(0, b"a")
    await turns()
    sending.producer.stop()
    session.exchanges[0].acknowledge()
    await turns()
    assert not future.done()


def requests() -> Lane[Requests]:
    return Lane("requests", 0, Requests())


def built(lane: Lane[Requests], identity: ProducerIdentity = IDENTITY, bytes_max: int = BATCH_BYTES_MAX) -> list[bytes]:
    batch = lane.build(identity, False, bytes_max)
    assert batch is lane.batch
    return [] if batch is None else [record.value for record in MemoryRecords(bytes(batch)).next_batch()]


def acknowledge(lane: Lane[Requests]) -> None:
    lane.batch = None
    lane.queue.sent = []


async def test_a_full_batch_leaves_the_rest_for_the_next_one() -> None:
    lane = requests()
    large = waiter(bytes(300))
    lane.queue.waiting += [waiter(b"a" * 50), waiter(b"b" * 50), waiter(b"c" * 50), large]
    assert built(lane, bytes_max=200) == [b"a" * 50, b"b" * 50]
    acknowledge(lane)
    assert built(lane, bytes_max=200) == [b"c" * 50]
    acknowledge(lane)
    # One that is larger than a batch has one for itself.
    assert built(lane, bytes_max=200) == [large.payload]
    acknowledge(lane)
    assert not lane.queue.waiting


async def test_nobody_waits_for_it_any_more() -> None:
    lane = requests()
    cancelled, wanted = waiter(b"cancelled"), waiter(b"wanted")
    lane.queue.waiting += [cancelled, wanted]
    future_of(cancelled).cancel()
    assert built(lane) == [b"wanted"]
    acknowledge(lane)
    lane.queue.waiting.append(cancelled)
    assert built(lane) == []
    assert lane.batch is None


async def test_what_may_be_repeated_comes_first() -> None:
    lane = requests()
    lane.queue.waiting += [waiter(b"a", repeatable=True), waiter(b"b"), waiter(b"c", repeatable=True)]
    built(lane)
    lane.queue.waiting.append(waiter(b"d"))
    lane.queue.lost()
    lane.batch = None
    assert built(lane, ProducerIdentity(8, 0)) == [b"a", b"c", b"d"]


async def test_sequence_numbers_begin_anew_with_each_identity() -> None:
    lane = requests()
    numbers = []
    for identity in (IDENTITY, IDENTITY, ProducerIdentity(8, 0), ProducerIdentity(8, 0)):
        lane.queue.waiting += [waiter(b"a"), waiter(b"b")]
        batch = MemoryRecords(bytes(lane.build(identity, False, BATCH_BYTES_MAX) or b"")).next_batch()
        numbers.append((batch.producer_id, batch.base_sequence))
        acknowledge(lane)
    assert numbers == [(7, 0), (7, 2), (8, 0), (8, 0)], "another object is another identity"


async def test_an_append_that_is_spread_over_batches_ends_with_the_last() -> None:
    lane = Lane("epochs", 0, Appends())
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    lane.queue.waiting.append(Append([record(number) for number in range(20)], 700, future))
    offset = released = batches = 0
    while lane.queue.waiting:
        assert not future.done()
        batch = MemoryRecords(bytes(lane.build(IDENTITY, True, 200) or b"")).next_batch()
        assert batch.is_transactional
        released += lane.queue.acknowledged(offset)
        offset, batches = offset + len(list(batch)), batches + 1
    assert (future.result(), released) == (20, 700)
    assert batches > 2


def test_nothing_waits_before_there_is_a_reply() -> None:
    pacing = Pacing()
    pacing.exchanged(0, 10.0, 100)
    assert pacing.wait_s(0, 10.0) <= 0


def test_the_pause_is_a_share_of_what_replies_take() -> None:
    pacing = Pacing()
    pacing.replied_after(0.1)
    assert pacing.wait_s(0, 10.0) <= 0
    pacing.exchanged(0, 10.0, 100)
    assert abs(pacing.wait_s(0, 10.0) - 0.1 * PAUSE_SHARE) < 1e-9
    assert pacing.wait_s(0, 10.1) <= 0
    assert pacing.wait_s(1, 10.0) <= 0  # another broker


def test_who_sends_one_request_after_the_other_never_waits() -> None:
    pacing, now_s = Pacing(), 10.0
    for _ in range(5):
        assert pacing.wait_s(0, now_s) <= 0
        pacing.exchanged(0, now_s, 100)
        now_s += 0.005
        pacing.replied_after(0.005)


def test_the_pause_has_an_end() -> None:
    pacing = Pacing()
    pacing.replied_after(60.0)
    assert pacing.pause_s == PAUSE_SECONDS_MAX


def test_a_large_exchange_is_followed_by_the_next_one_at_once() -> None:
    pacing = Pacing()
    pacing.replied_after(1.0)
    pacing.exchanged(0, 10.0, EXCHANGE_BYTES_PAUSED + 1)
    assert pacing.wait_s(0, 10.0) <= 0
