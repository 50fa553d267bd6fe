"""Which requests go into which exchange, and what happens to those whose batch is refused or not answered."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from styx.client.kafka import sender as sender_module
from styx.client.kafka.sender import RequestSender
from styx.kafka import producer as producer_module
from styx.kafka.producer import PAUSE_SECONDS_MAX
from styx.kafka.session import KafkaSession
from tests.client.kafka.fake_session import FakeSession, turns, waiter

pytestmark = pytest.mark.anyio

REFUSED = 45
"""A sequence number out of order: no repetition helps."""
NOT_LEADER = 6
FORBIDDEN = 29
"""To write into this topic."""
DUPLICATE = 46
NOT_ALLOWED = 31


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def failures() -> list[BaseException]:
    return []


@pytest.fixture
async def sender(
    session: FakeSession, failures: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RequestSender]:
    """It looks for signs of life at every turn of the event loop, and repeats at once."""
    monkeypatch.setattr(sender_module, "PROBE_SECONDS", 0)
    monkeypatch.setattr(producer_module, "RETRY_SECONDS", 0)
    monkeypatch.setattr(sender_module, "CLOSE_SECONDS", 0.001)
    sender = RequestSender(cast(KafkaSession, session), "requests", failures.append)
    await sender.start()
    yield sender
    await sender.close()


async def test_one_turn_is_one_exchange(session: FakeSession, sender: RequestSender) -> None:
    for name, slot in (b"a", 0), (b"b", 1), (b"c", 0):
        sender.send(waiter(name, slot))
    await turns()
    assert session.sent() == [{0: [b"a", b"c"], 1: [b"b"]}]


async def test_each_broker_has_its_own(session: FakeSession, sender: RequestSender) -> None:
    session.leaders = {1: 7}
    for name, slot in (b"a", 0), (b"b", 1):
        sender.send(waiter(name, slot))
    await turns()
    assert sorted((exchange.node, exchange.values) for exchange in session.exchanges) == [
        (0, {0: [b"a"]}),
        (7, {1: [b"b"]}),
    ]


async def test_requests_gather_while_an_exchange_is_under_way(session: FakeSession, sender: RequestSender) -> None:
    for name, slot in (b"a", 0), (b"b", 0), (b"c", 0), (b"d", 1):
        sender.send(waiter(name, slot))
        await turns()
    assert session.sent() == [{0: [b"a"]}]
    session.exchanges[0].acknowledge()
    await turns()
    assert session.sent()[1:] == [{0: [b"b", b"c"], 1: [b"d"]}]
    assert session.exchanges[1].numbers == {0: (1, 1), 1: (1, 0)}


async def test_requests_gather_in_the_pause_between_two_exchanges(
    session: FakeSession, sender: RequestSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    now_s = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now_s)
    sender.producer.pacing.replied_after(4.0)
    for name in b"a", b"b", b"c":
        sender.send(waiter(name))
        await turns()
        if name == b"a":
            session.exchanges[0].acknowledge()
    assert session.sent() == [{0: [b"a"]}]
    now_s += PAUSE_SECONDS_MAX
    await turns()
    assert session.sent()[1:] == [{0: [b"b", b"c"]}]
    session.exchanges[1].acknowledge()
    await turns()


async def test_a_full_exchange_leaves_slots_for_the_next_one(
    session: FakeSession, sender: RequestSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender.producer, "_exchange_bytes_max", 1)
    for name, slot in (b"a", 0), (b"b", 1), (b"c", 2):
        sender.send(waiter(name, slot))
    await turns()
    for exchange in range(2):
        sender.send(waiter(b"late"))
        session.exchanges[exchange].acknowledge()
        await turns()
    assert session.sent() == [{0: [b"a"]}, {1: [b"b"]}, {2: [b"c"]}]


async def test_a_refused_batch_is_sent_again_only_with_idempotency_keys(
    session: FakeSession, sender: RequestSender
) -> None:
    once, twice = waiter(b"once"), waiter(b"twice", repeatable=True)
    for each in once, twice, waiter(b"other", 1):
        sender.send(each)
    await turns()
    sender.send(waiter(b"later"))
    session.exchanges[0].acknowledge(slot_0=REFUSED)
    await turns()
    assert session.sent()[1:] == [{0: [b"twice", b"later"]}]
    assert not once.receiver.done()
    # What follows a gap in the sequence numbers has a new identity, in each slot.
    sender.send(waiter(b"another", 1))
    session.exchanges[1].acknowledge()
    await turns()
    assert [exchange.numbers for exchange in session.exchanges] == [{0: (1, 0), 1: (1, 0)}, {0: (2, 0)}, {1: (2, 0)}]


async def test_what_is_refused_over_and_over_is_not_repeated_at_once(
    session: FakeSession,
    sender: RequestSender,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for refusal in range(3):
        sender.send(waiter(b"%d" % refusal, repeatable=True))
        await turns()
        session.exchanges[refusal].acknowledge(slot_0=FORBIDDEN)
    await turns()
    assert [record.levelname for record in caplog.records if "refuses" in record.message] == ["WARNING"]
    monkeypatch.setattr(producer_module, "RETRY_SECONDS", 60.0)
    session.exchanges[3].acknowledge(slot_0=FORBIDDEN)
    sender.send(waiter(b"another", 1))
    await turns()
    assert len(session.exchanges) == 4


async def test_what_passes_is_repeated_unchanged(session: FakeSession, sender: RequestSender) -> None:
    sender.send(waiter(b"a"))
    sender.send(waiter(b"b", 1))
    await turns()
    sender.send(waiter(b"later"))
    session.exchanges[0].acknowledge(slot_0=NOT_LEADER)
    await turns()
    session.exchanges[1].answer.set_exception(ConnectionError("the connection broke"))
    await turns()
    session.exchanges[2].answer.set_result({})
    await turns()
    assert session.sent() == [{0: [b"a"], 1: [b"b"]}] + 3 * [{0: [b"a"]}]
    assert {exchange.numbers[0] for exchange in session.exchanges} == {(1, 0)}
    # The broker had it, and says so.
    session.exchanges[3].acknowledge(slot_0=DUPLICATE)
    await turns()
    assert session.exchanges[4].values == {0: [b"later"]}
    assert session.exchanges[4].numbers == {0: (1, 1)}


async def test_a_batch_follows_its_leader(session: FakeSession, sender: RequestSender) -> None:
    session.leaders = {0: None}
    sender.send(waiter(b"a"))
    await turns()
    assert session.sent() == []
    session.leaders = {0: 3}
    await turns()
    assert [(exchange.node, exchange.values) for exchange in session.exchanges] == [(3, {0: [b"a"]})]
    # While it is under way, nobody else sends it.
    session.leaders = {0: 4}
    sender.send(waiter(b"b"))
    sender.send(waiter(b"c", 1))
    await turns()
    assert [exchange.values for exchange in session.exchanges[1:]] == [{1: [b"c"]}]
    session.exchanges[0].acknowledge(slot_0=NOT_LEADER)
    await turns()
    assert [(exchange.node, exchange.values) for exchange in session.exchanges[2:]] == [(4, {0: [b"a"]})]


async def test_no_identity_for_a_while(
    session: FakeSession, sender: RequestSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.refusals.extend([NOT_ALLOWED] * 2)
    sender.send(waiter(b"a"))
    await turns()
    sender.send(waiter(b"b"))
    session.exchanges[0].acknowledge(slot_0=REFUSED)
    await turns(100)
    assert session.sent()[1:] == [{0: [b"b"]}]
    assert session.exchanges[1].numbers == {0: (4, 0)}


async def test_away(session: FakeSession, sender: RequestSender, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sender.away_reason is None
    monkeypatch.setattr(sender_module, "AWAY_SECONDS", -1.0)
    assert sender.away_reason is None
    sender.send(waiter(b"a"))
    await turns()
    assert "nowhere:9092 has not answered" in str(sender.away_reason)
    session.exchanges[0].acknowledge()
    await turns()
    monkeypatch.setattr(sender_module, "AWAY_SECONDS", 60.0)
    await turns()
    monkeypatch.setattr(sender_module, "AWAY_SECONDS", -1.0)
    assert sender.away_reason is None


async def test_away_without_any_request(
    session: FakeSession, sender: RequestSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.alive = False
    await turns()
    assert sender.away_reason is None
    monkeypatch.setattr(sender_module, "AWAY_SECONDS", -1.0)
    assert "nowhere:9092 has not answered" in str(sender.away_reason)
    monkeypatch.setattr(sender_module, "AWAY_SECONDS", 60.0)
    session.alive = True
    await turns()
    monkeypatch.setattr(sender_module, "AWAY_SECONDS", -1.0)
    assert sender.away_reason is None


async def test_an_unforeseen_fault_is_told(
    session: FakeSession, sender: RequestSender, failures: list[BaseException]
) -> None:
    sender.send(waiter(b"a"))
    await turns()
    session.exchanges[0].answer.set_exception(KeyError("a bug"))
    await turns()
    assert [repr(failure) for failure in failures] == ["KeyError('a bug')"]


async def test_closing_waits_for_what_is_under_way_and_sends_no_more(
    session: FakeSession, sender: RequestSender
) -> None:
    sender.send(waiter(b"a"))
    await turns()
    sender.send(waiter(b"b"))
    session.exchanges[0].acknowledge()
    await sender.close()
    sender.send(waiter(b"c"))
    await turns()
    assert session.sent() == [{0: [b"a"]}]
