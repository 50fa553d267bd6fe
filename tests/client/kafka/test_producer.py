"""Which requests go into which batch, and what happens to those whose batch failed."""

from collections.abc import AsyncIterator

import pytest
from aiokafka.errors import KafkaError

from styx.kafka_requests import producer as producer_module
from styx.kafka_requests.producer import STUCK_SECONDS, RequestProducer
from tests.client.kafka.fake_producer import FakeKafka, started, turns, waiter

pytestmark = pytest.mark.anyio


@pytest.fixture
def kafka_fake() -> FakeKafka:
    return FakeKafka()


@pytest.fixture
async def producer(kafka_fake: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RequestProducer]:
    producer = await started(kafka_fake, monkeypatch)
    yield producer
    await producer.close()
    assert kafka_fake.started == kafka_fake.stopped


async def test_one_turn_is_one_batch_a_slot(kafka_fake: FakeKafka, producer: RequestProducer) -> None:
    for name, slot in (b"a", 0), (b"b", 1), (b"c", 0):
        producer.send(waiter(name, slot))
    await turns()
    assert kafka_fake.sent() == [(0, [b"a", b"c"]), (1, [b"b"])]


async def test_requests_gather_while_a_batch_of_their_slot_is_under_way(
    kafka_fake: FakeKafka, producer: RequestProducer
) -> None:
    for name in (b"a", b"b", b"c"):
        producer.send(waiter(name))
        await turns()
    producer.send(waiter(b"d", 1))
    await turns()
    assert kafka_fake.sent() == [(0, [b"a"]), (1, [b"d"])]
    kafka_fake.batches[0].done.set_result(None)
    await turns()
    assert kafka_fake.sent()[2:] == [(0, [b"b", b"c"])]


async def test_a_full_batch_leaves_the_rest_for_the_next_one(kafka_fake: FakeKafka, producer: RequestProducer) -> None:
    for number in range(5):
        producer.send(waiter(b"%d" % number))
    await turns()
    kafka_fake.batches[0].done.set_result(None)
    await turns()
    assert kafka_fake.sent() == [(0, [b"0", b"1", b"2"]), (0, [b"3", b"4"])]


async def test_nobody_waits_for_it_any_more(kafka_fake: FakeKafka, producer: RequestProducer) -> None:
    cancelled, wanted = waiter(b"cancelled"), waiter(b"wanted")
    producer.send(cancelled)
    producer.send(wanted)
    cancelled.future.cancel()
    await turns()
    assert kafka_fake.sent() == [(0, [b"wanted"])]


async def test_a_failed_batch_is_sent_again_only_with_idempotency_keys(
    kafka_fake: FakeKafka, producer: RequestProducer
) -> None:
    once, twice = waiter(b"once"), waiter(b"twice", repeatable=True)
    producer.send(once)
    producer.send(twice)
    await turns()
    producer.send(waiter(b"later"))
    kafka_fake.batches[0].done.set_exception(KafkaError("expired"))
    await turns()
    assert kafka_fake.sent()[1:] == [(0, [b"twice", b"later"])]
    assert not once.future.done()


async def test_a_failed_batch_ends_its_producer_but_not_the_other_batches(
    kafka_fake: FakeKafka, producer: RequestProducer
) -> None:
    producer.send(waiter(b"a", 0))
    producer.send(waiter(b"b", 1))
    await turns()
    kafka_fake.batches[0].done.set_exception(KafkaError("expired"))
    await turns()
    assert kafka_fake.started == 2
    producer.send(waiter(b"c", 1))
    await turns()
    assert len(kafka_fake.batches) == 2
    # A late failure of the old producer's does not end the new one.
    kafka_fake.batches[1].done.set_exception(KafkaError("expired"))
    await turns()
    assert kafka_fake.started == 2
    assert kafka_fake.sent()[2:] == [(1, [b"c"])]


async def test_what_was_not_taken_is_sent_by_the_next_producer(
    kafka_fake: FakeKafka, producer: RequestProducer
) -> None:
    kafka_fake.refuse = KafkaError("the sender has ended")
    for name, slot in (b"a", 0), (b"b", 0), (b"c", 1):
        producer.send(waiter(name, slot))
    await turns(20)
    assert kafka_fake.started == 2
    assert sorted(kafka_fake.sent()) == [(0, [b"a", b"b"]), (1, [b"c"])]


async def test_away(kafka_fake: FakeKafka, producer: RequestProducer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert producer.away_reason is None
    monkeypatch.setattr(producer_module, "AWAY_SECONDS", -1.0)
    assert producer.away_reason is None
    producer.send(waiter(b"a"))
    await turns()
    assert "nowhere:9092 has not answered" in str(producer.away_reason)
    kafka_fake.batches[0].done.set_result(None)
    await turns()
    assert producer.away_reason is None


async def test_away_without_any_request(
    kafka_fake: FakeKafka, producer: RequestProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_fake.alive = False
    await turns()
    assert producer.away_reason is None
    monkeypatch.setattr(producer_module, "AWAY_SECONDS", -1.0)
    assert "nowhere:9092 has not answered" in str(producer.away_reason)
    monkeypatch.setattr(producer_module, "AWAY_SECONDS", 60.0)
    kafka_fake.alive = True
    await turns()
    monkeypatch.setattr(producer_module, "AWAY_SECONDS", -1.0)
    assert producer.away_reason is None


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def time(self) -> float:
        return self.now_s


@pytest.fixture
def clock(producer: RequestProducer, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(producer, "_loop", clock)
    return clock


async def test_a_batch_without_an_outcome_is_given_up_while_kafka_answers(
    kafka_fake: FakeKafka, producer: RequestProducer, clock: Clock
) -> None:
    producer.send(waiter(b"a"))
    await turns()
    clock.now_s += STUCK_SECONDS - 1
    await turns()
    assert kafka_fake.started == 1
    clock.now_s += 2
    await turns()
    assert kafka_fake.started == 2
    producer.send(waiter(b"b"))
    await turns()
    assert kafka_fake.sent() == [(0, [b"a"]), (0, [b"b"])]
    # Its outcome comes after all, and must not be taken for that of the slot's next batch.
    kafka_fake.batches[0].done.set_result(None)
    producer.send(waiter(b"c"))
    await turns()
    assert len(kafka_fake.batches) == 2


async def test_a_batch_is_not_given_up_because_kafka_was_away(
    kafka_fake: FakeKafka, producer: RequestProducer, clock: Clock
) -> None:
    producer.send(waiter(b"a"))
    await turns()
    kafka_fake.alive = False
    await turns()
    clock.now_s += STUCK_SECONDS + 1
    await turns()
    kafka_fake.alive = True
    await turns()
    assert kafka_fake.started == 1
    clock.now_s += STUCK_SECONDS + 1
    await turns()
    assert kafka_fake.started == 2
