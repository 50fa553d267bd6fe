"""A gateway that is told to stop beside another one: with a drain, clients on kept-alive connections see no error."""

import asyncio
import os
import signal
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.gateway.balancer import balanced
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import Running, running

pytestmark = pytest.mark.anyio

CLIENTS = 8
BEFORE, AFTER = 200, 200
"""Requests of all clients before the gateway is told to stop, and after it has ended."""
DRAIN_SECONDS = 5.0


async def test_a_gateway_that_is_stopped_costs_no_request() -> None:
    stopped, other = FakeEngine(), FakeEngine()
    over = asyncio.Event()
    statuses: list[int] = []
    # Signals go to the gateway that was started last.
    async with (
        running(other) as beside,
        running(stopped, drain_seconds=DRAIN_SECONDS) as ending,
        balanced(ending.url, beside.url) as url,
        aiohttp.ClientSession() as session,
    ):

        async def client() -> None:
            while not over.is_set():
                # A POST, which aiohttp never repeats by itself.
                async with session.post(f"{url}/v1/shelf/a/key") as answer:
                    await answer.read()
                    statuses.append(answer.status)

        async def stop_in_the_middle() -> int:
            while len(stopped.requests) < BEFORE:  # noqa: ASYNC110 - a counter is no event source
                await asyncio.sleep(0.001)
            assert not other.requests
            os.kill(os.getpid(), signal.SIGTERM)
            await ending.task
            at_end = len(statuses)
            while len(statuses) < at_end + AFTER:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.001)
            over.set()
            return at_end

        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(client())
            group.create_task(stop_in_the_middle())
    assert set(statuses) == {200}
    assert len(stopped.requests) + len(other.requests) == len(statuses)
    assert len(other.requests) >= AFTER


async def test_while_it_drains(engine: FakeEngine) -> None:
    engine.hold()
    async with running(engine, drain_seconds=60) as server, aiohttp.ClientSession(server.url) as session:

        async def status_of(path: str) -> tuple[int, str | None]:
            async with session.post(path) if path.startswith("/v1") else session.get(path) as answer:
                await answer.read()
                return answer.status, answer.headers.get("Connection")

        assert await status_of("/readyz") == (200, None)
        under_way = asyncio.create_task(status_of("/v1/shelf/a/key"))
        await engine.arrived()
        os.kill(os.getpid(), signal.SIGTERM)
        while (await status_of("/readyz"))[0] == 200:
            pass
        async with session.get("/readyz") as answer:
            assert "shutting down" in (await answer.json())["error"]["message"]
        assert await status_of("/healthz") == (200, "close")
        engine.release()
        assert await under_way == (200, "close")
        assert await status_of("/v1/shelf/a/key") == (200, "close"), "new connections are served"
        assert not server.task.done()
        os.kill(os.getpid(), signal.SIGTERM)
        await server.task


async def test_a_second_signal_ends_the_drain_and_finishes_what_is_in_flight(engine: FakeEngine) -> None:
    engine.hold()
    async with running(engine, drain_seconds=60) as server, aiohttp.ClientSession(server.url) as session:

        async def request() -> int:
            async with session.post("/v1/shelf/a/key") as answer:
                return answer.status

        under_way = asyncio.create_task(request())
        await engine.arrived()
        draining = asyncio.create_task(_until_refused(server))
        os.kill(os.getpid(), signal.SIGTERM)
        while (await session.get("/readyz")).status == 200:
            pass
        assert not draining.done(), "connections are accepted"
        os.kill(os.getpid(), signal.SIGTERM)
        await draining
        engine.release()
        assert await under_way == 200
        await server.task


async def test_an_engine_that_failed_is_not_drained(engine: FakeEngine) -> None:
    async with running(engine, drain_seconds=60) as server:
        server.stop.set()
        await server.task


async def _until_refused(server: Running) -> None:
    address = urlsplit(server.url)
    while True:
        try:
            _, writer = await asyncio.open_connection(address.hostname, address.port)
        except (ConnectionRefusedError, ConnectionResetError):
            return
        writer.close()
        await asyncio.sleep(0.001)
