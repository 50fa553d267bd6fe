"""The broker is killed and comes back in the middle of a load: no request is lost silently, and none is run twice."""

import asyncio
from collections import Counter

import pytest

from styx.client.kafka.requester import Requester
from styx.errors import NotSent
from styx.kafka.address import KafkaAddress
from styx.testing.patience import PATIENCE_SECONDS
from tests.client.kafka.fake_worker import FakeWorker
from tests.client.kafka.test_requester import request
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SENDERS = 50
TIMEOUT = PATIENCE_SECONDS
"""Reached only by what will not happen."""
OUTLASTING_SECONDS = 10.0
"""Several times as long as it takes to notice that the broker is away."""


@pytest.fixture(scope="module")
def kafka(kafka_of_its_own: RealKafka) -> RealKafka:
    return kafka_of_its_own


class Load:
    """Senders that go on until `stop`; what came of each request is counted."""

    def __init__(self, requester: Requester, timeout: float) -> None:
        self.outcomes: Counter[str] = Counter()
        self._requester = requester
        self._timeout = timeout
        self._tasks = [asyncio.create_task(self._send(number)) for number in range(SENDERS)]
        self._stopped = False

    async def stop(self) -> None:
        self._stopped = True
        await asyncio.gather(*self._tasks)

    async def until(self, outcome: str, number: int) -> None:
        """Until so many more requests have ended like this."""
        wanted = self.outcomes[outcome] + number
        async with asyncio.timeout(TIMEOUT):
            while self.outcomes[outcome] < wanted:  # noqa: ASYNC110 - the senders only count
                await asyncio.sleep(0.01)

    async def _send(self, number: int) -> None:
        requester = self._requester
        while not self._stopped:
            sent = request(requester, "echo", b"\x91\x07", number % 4)
            try:
                reply = await requester.submit(sent, self._timeout)
            except NotSent:
                self.outcomes["refused"] += 1
                await asyncio.sleep(0.01)
            except TimeoutError:
                self.outcomes["timeout"] += 1
            else:
                assert (reply.request_id, reply.result) == (sent.request_id, [7])
                self.outcomes["replied"] += 1


async def test_kill_and_restart(address: KafkaAddress, worker: FakeWorker, kafka: RealKafka) -> None:
    requester = Requester(address, worker.app)
    await requester.start()
    load = Load(requester, TIMEOUT)
    await load.until("replied", 1000)
    await asyncio.to_thread(kafka.kill)
    # Those under way wait, new ones are refused.
    late = request(requester, "echo")
    async with asyncio.timeout(TIMEOUT):
        while requester.unavailable_reason is None:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.01)
    with pytest.raises(NotSent, match="has not answered for"):
        requester.submit(late, raw=True)
    assert requester.in_flight == SENDERS
    await asyncio.to_thread(kafka.start)
    await load.until("replied", 1000)
    assert requester.unavailable_reason is None
    await load.stop()
    assert load.outcomes["timeout"] == 0
    assert requester.in_flight == 0
    assert len(worker.runs) == load.outcomes["replied"]
    assert set(worker.runs.values()) == {1}
    await requester.close()


async def test_waiting_ends_at_its_timeout_and_closing_does_not_wait_for_kafka(
    address: KafkaAddress, worker: FakeWorker, kafka: RealKafka
) -> None:
    requester = Requester(address, worker.app)
    await requester.start()
    await asyncio.to_thread(kafka.kill)
    try:
        with pytest.raises(TimeoutError, match=r"Kafka at .* has not answered for .* the request may still commit"):
            await requester.submit(request(requester, "echo"), OUTLASTING_SECONDS)
        async with asyncio.timeout(TIMEOUT):
            await requester.close()
    finally:
        await asyncio.to_thread(kafka.start)
