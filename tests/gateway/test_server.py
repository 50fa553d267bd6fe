"""The server on a real socket: sizes and keys as they cross the wire, and a shutdown that loses nothing."""

import asyncio
import http.client
import os
import signal
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from styx import ConfigurationError, Limits
from styx.gateway.server import _signals, serve
from styx.http.room import HttpLimits, Room
from styx.http.server import HttpServer
from styx.testing.patience import PATIENCE_SECONDS
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


async def test_serves_on_a_free_port(engine: FakeEngine) -> None:
    async with running(engine) as server, httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_SECONDS) as client:
        answer = await client.post("/v1/shelf/a%2Fb+c/key")
        assert answer.json()["result"] == repr("a/b+c")
        assert (await client.get("/readyz")).status_code == 200


async def test_an_oversized_body_is_answered_on_a_closing_connection() -> None:
    """The answer must reach a client that sends all before it reads, on a connection that closes afterwards."""
    engine = FakeEngine(Limits(request_bytes_max=1000))

    def send(url: str, chunked: bool) -> tuple[int, bytes]:
        body = b" " * 4_000_000
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        sent: Any = iter([body]) if chunked else body
        connection.request("POST", "/v1/shelf/a/echo", sent, {"Connection": "close"}, encode_chunked=chunked)
        answer = connection.getresponse()
        status, content = answer.status, answer.read()
        connection.close()
        return status, content

    async with running(engine) as server:
        for chunked in (False, True):
            status, content = await asyncio.to_thread(send, server.url, chunked)
            assert status == 413
            assert b"too_large" in content


async def test_a_client_that_hangs_up_leaks_nothing(engine: FakeEngine) -> None:
    engine.hold()
    async with running(engine) as server, httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_SECONDS) as client:
        address = urlsplit(server.url)
        _, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(b"POST /v1/shelf/a/key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        await engine.arrived()
        writer.close()
        engine.release()
        metrics = ""
        while "styx_gateway_in_flight 0.0" not in metrics:  # asking gives the server its turns
            metrics = (await client.get("/metrics")).text
    assert len(engine.requests) == 1


async def test_shutdown_finishes_what_is_in_flight_and_then_calls_the_hook(engine: FakeEngine) -> None:
    in_flight_at_hook = []

    async def hook() -> None:
        in_flight_at_hook.append(engine.in_flight)

    engine.hold()
    async with (
        running(engine, hook) as server,
        httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_SECONDS) as client,
    ):

        async def request() -> int:
            answer = await client.post("/v1/shelf/a/key")
            return answer.status_code

        waiting = asyncio.create_task(request())
        await engine.arrived()
        server.stop.set()
        address = urlsplit(server.url)
        while True:  # until it no longer accepts
            try:
                _, writer = await asyncio.open_connection(address.hostname, address.port)
            except (ConnectionRefusedError, ConnectionResetError):  # reset: it was in the queue when that was closed
                break
            writer.close()
            await asyncio.sleep(0.001)
        assert in_flight_at_hook == []
        engine.release()
        assert await waiting == 200
        await server.task
    # Not "the client had its answer first": what it reads when is up to the scheduler.
    assert in_flight_at_hook == [0]


async def test_what_outlives_the_grace_period_is_told_so(engine: FakeEngine) -> None:
    engine.hold()
    async with (
        running(engine, grace_seconds=0) as server,
        httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_SECONDS) as client,
    ):
        waiting = asyncio.create_task(client.post("/v1/shelf/a/key"))
        await engine.arrived()
        server.stop.set()
        answer = await waiting
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "unknown")
        await server.task


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]])
async def test_signals(engine: FakeEngine, signals: list[signal.Signals]) -> None:
    engine.hold()
    hooks = []

    async def hook() -> None:
        hooks.append(1)

    async with (
        running(engine, hook) as server,
        httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_SECONDS) as client,
    ):
        waiting = asyncio.create_task(client.post("/v1/shelf/a/key"))
        await engine.arrived()
        for number in signals:
            os.kill(os.getpid(), number)
        engine.release()
        assert (await waiting).status_code == 200
        await server.task
    assert hooks == [1]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize(
    ("sent", "forced"),
    [
        ([signal.SIGINT], False),
        ([signal.SIGTERM, signal.SIGTERM], False),
        ([signal.SIGINT, signal.SIGTERM], False),
        ([signal.SIGTERM, signal.SIGINT], True),
        ([signal.SIGINT, signal.SIGINT], True),
    ],
)
async def test_only_an_interrupt_after_another_signal_forces_the_end(sent: list[signal.Signals], forced: bool) -> None:
    server = HttpServer("none", Room(HttpLimits(1, 1)), 1, 1, 1)
    handled = asyncio.Event()

    def shut_down() -> None:
        server.should_exit = True
        handled.set()

    with _signals(server, shut_down):
        for number in sent:
            handled.clear()
            os.kill(os.getpid(), number)
            await handled.wait()
    assert (server.should_exit, server.force_exit) == (True, forced)


async def test_port_in_use(engine: FakeEngine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"127.0.0.1:{port}.*in use.*choose another"):
            await serve(engine, port=port)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("no such host", 0), ("127.0.0.1", -1)])
async def test_no_such_address(engine: FakeEngine, host: str, port: int) -> None:
    with pytest.raises(ConfigurationError, match="cannot listen"):
        await serve(engine, host, port)
