"""Gateways in front of Kafka: requests over HTTP, side by side, with a new version of the app, and without a broker."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from styx import App, Context, Operator
from styx.cluster.gateway.process import GatewayProcess
from styx.errors import NotSent
from styx.kafka.address import KafkaAddress
from styx.model.request import Placed
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Security
from tests.client.kafka.fake_worker import FakeWorker
from tests.gateway.running import running
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CLIENTS = 50


@pytest.fixture(scope="module")
def kafka(kafka_of_its_own: RealKafka) -> RealKafka:
    return kafka_of_its_own


def made(name: str, version: int) -> App:
    """Version 2 of the app has another function, and an operator for all of whose keys there is one partition."""
    shelf = Operator("shelf", n_partitions=1 if version == 2 else None)

    async def echo(ctx: Context, value: Any) -> Any: ...
    async def fail(ctx: Context) -> None: ...
    async def silent(ctx: Context) -> None: ...
    async def slot(ctx: Context) -> int:
        return 0

    for function in (echo, fail, silent):
        shelf.register(function)
    if version == 2:
        shelf.register(slot)
    return App(name, operators=[shelf])


def gateway_of(address: KafkaAddress) -> GatewayProcess:
    """One that its coordinator has told nothing yet."""
    return GatewayProcess("g", Security(b"0123456789abcdef", "c"), "127.0.0.1:1", address)


@pytest.fixture
async def engine(address: KafkaAddress, worker: FakeWorker) -> AsyncIterator[GatewayProcess]:
    engine = gateway_of(address)
    await engine.serve(made(worker.app, 1))
    yield engine
    await engine.close()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(http: aiohttp.ClientSession, url: str, path: str, body: Any = (), **headers: str) -> tuple[int, Any]:
    async with http.post(f"{url}/v1/{path}", json=body, headers=headers) as response:
        return response.status, await response.json()


async def get(http: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    async with http.get(url) as response:
        return response.status, await response.text()


async def test_outcomes(engine: GatewayProcess, http: aiohttp.ClientSession) -> None:
    async with running(engine) as server:
        status, body = await post(http, server.url, "shelf/key/echo", [7])
        assert (status, body["result"]) == (200, [7])
        status, body = await post(http, server.url, "shelf/key/fail")
        assert (status, body["error"]["type"]) == (409, "OutOfStock")
        status, body = await post(http, server.url, "shelf/key/silent", **{"Styx-Timeout": "0.05"})
        assert (status, body["error"]["code"]) == (504, "timeout")
        assert (await get(http, f"{server.url}/readyz"))[0] == 200
        _, metrics = await get(http, f"{server.url}/metrics")
        for line in (
            'styx_requester_replies_total{outcome="committed"} 1.0',
            'styx_requester_replies_total{outcome="aborted"} 1.0',
            "styx_requester_sent_total 3.0",
            "styx_requester_reply_seconds_count 2.0",
            "styx_kafka_reachable 1.0",
        ):
            assert line in metrics.splitlines()


async def test_two_gateways_with_many_clients(
    address: KafkaAddress, engine: GatewayProcess, worker: FakeWorker, http: aiohttp.ClientSession
) -> None:
    other = gateway_of(address)
    await other.serve(made(worker.app, 1))
    async with running(engine) as first, running(other) as second:

        async def work(number: int) -> list[Any]:
            url = (first, second)[number % 2].url
            answers = [await post(http, url, f"shelf/{number}/echo", [number]) for _ in range(10)]
            return [(status, body["result"]) for status, body in answers]

        assert await asyncio.gather(*map(work, range(CLIENTS))) == [[(200, [number])] * 10 for number in range(CLIENTS)]
    await other.close()
    assert len(worker.runs) == CLIENTS * 10
    assert set(worker.runs.values()) == {1}
    assert engine.in_flight == other.in_flight == 0


async def test_a_new_version_is_served_from_the_next_request_on(
    engine: GatewayProcess, worker: FakeWorker, http: aiohttp.ClientSession
) -> None:
    async with running(engine) as server:
        slots = set()
        for number in range(10):
            await post(http, server.url, f"shelf/{number}/echo", [1])
            slots = set(worker.slots.values())
        assert len(slots) > 1
        assert (await post(http, server.url, "shelf/key/slot"))[0] == 404
        assert "/shelf/{key}/slot" not in (await get(http, f"{server.url}/openapi.json"))[1]
        await engine.serve(made(worker.app, 2))
        assert {(await post(http, server.url, f"shelf/{number}/slot"))[1]["result"] for number in range(10)} == {0}
        assert "/shelf/{key}/slot" in (await get(http, f"{server.url}/openapi.json"))[1]
        worker.slots.clear()
        for number in range(10):
            await post(http, server.url, f"shelf/{number}/echo", [1])
        assert set(worker.slots.values()) == {0}


async def test_without_kafka(
    engine: GatewayProcess, worker: FakeWorker, kafka: RealKafka, http: aiohttp.ClientSession
) -> None:
    async with running(engine) as server:
        await asyncio.to_thread(kafka.kill)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while engine.ready:  # noqa: ASYNC110 - nobody announces it
                    await asyncio.sleep(0.01)
            status, body = await post(http, server.url, "shelf/key/echo", [7])
            assert (status, body["error"]["code"]) == (503, "unavailable")
            assert "has not answered for" in body["error"]["message"]
            assert (await get(http, f"{server.url}/readyz"))[0] == 503
            assert "styx_kafka_reachable 0.0" in (await get(http, f"{server.url}/metrics"))[1]
        finally:
            await asyncio.to_thread(kafka.start)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not engine.ready:  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.01)
        assert (await post(http, server.url, "shelf/key/echo", [7]))[0] == 200


async def test_not_started(address: KafkaAddress) -> None:
    engine = gateway_of(address)
    assert not engine.ready
    assert engine.unavailable_reason == "the gateway waits for the coordinator at 127.0.0.1:1"
    with pytest.raises(NotSent, match="nothing was sent"):
        engine.submit_request(Placed("id", 0, b"", False))
    await engine.close()
