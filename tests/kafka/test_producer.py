"""When a producer commits its transaction, and what it sends meanwhile; who sends what another broker leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest

from styx.kafka import producer as producer_module
from styx.kafka.appends import Append, Appends
from styx.kafka.lane import Lane
from styx.kafka.producer import Producer
from styx.kafka.session import KafkaSession
from styx.kafka.transaction import ProducerIdentity, Transaction
from tests.client.kafka.fake_session import FakeSession, turns

pytestmark = pytest.mark.anyio

NOT_LEADER = 6
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

    async def send_coordinator(self, node: int, request: Any) -> Any:
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
