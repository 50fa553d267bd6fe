"""The gateway process before it knows its app, and what it makes of a coordinator that says something else."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from styx import App, ConfigurationError, RequestRejected
from styx.client.kafka.requester import Requester
from styx.cluster.gateway.process import GatewayProcess
from styx.cluster.wire import COORDINATOR, Code, Deployment, Serve, encode
from styx.deployment.package import pack
from styx.kafka.address import parse_kafka_url
from styx.model.limits import Limits
from styx.model.request import Placed
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Connection, Hello, Security, listen
from styx.transport.frame import prefix_of
from styx.transport.handshake import VERSION

SECURITY = Security(b"0123456789abcdef", "c")


def deployment(app: str) -> Serve:
    return Serve(Deployment(app, 4, 2, Limits()))


async def followed(messages: list[Serve | Code], until: Callable[[GatewayProcess], bool]) -> GatewayProcess:
    """A gateway that has heard these messages, one each time it connects."""
    left = list(messages)

    def accept(connection: Connection) -> None:
        connection.start(lambda *_: None, lambda *_: None)
        connection.send(encode(left.pop(0)))
        if left:
            connection.close()

    hello = Hello(cluster="c", role=COORDINATOR, name="c", incarnation="c")
    listener = await listen("127.0.0.1", 0, SECURITY, hello, accept)
    gateway = GatewayProcess("g", SECURITY, listener.address, parse_kafka_url("kafka://127.0.0.1:1"))
    running = asyncio.ensure_future(gateway.run())
    try:
        while not until(gateway) and not running.done():  # noqa: ASYNC110 - a gateway is no event source
            await asyncio.sleep(0.005)
        if running.done():
            running.result()
    finally:
        running.cancel()
        await asyncio.wait([running])
        await listener.close()
        await gateway.close()
    return gateway


def test_before_it_knows_anything() -> None:
    gateway = GatewayProcess("g", SECURITY, "127.0.0.1:1", parse_kafka_url("kafka://127.0.0.1:1"))
    assert gateway.unavailable_reason == "the gateway waits for the coordinator at 127.0.0.1:1"
    assert (gateway.ready, gateway.in_flight, gateway.version, gateway.connected) == (False, 0, 0, False)
    with pytest.raises(RequestRejected, match="unavailable"):
        gateway.app.operator("account")


@pytest.mark.anyio
async def test_the_part_of_an_ingest_speaks_as_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    ingest = GatewayProcess("i", SECURITY, "127.0.0.1:1", parse_kafka_url("kafka://127.0.0.1:1"), serves=False)
    assert ingest.unavailable_reason == "the ingest waits for the coordinator at 127.0.0.1:1"
    running = asyncio.create_task(ingest.run())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not [each for each in caplog.records if each.name.startswith("styx.")]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.wait([running])
        await ingest.close()
    assert {each.name for each in caplog.records if each.name.startswith("styx.")} == {"styx.ingest"}


def test_an_app_without_a_version() -> None:
    gateway = asyncio.run(followed([deployment("bank")], lambda g: "styx deploy" in (g.unavailable_reason or "")))
    assert gateway.unavailable_reason == "no version of app 'bank' has been deployed yet: styx deploy MODULE:APP"


def test_a_version_that_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.cluster.gateway.process.RECONNECT_SECONDS", 0.001)
    messages: list[Serve | Code] = [deployment("bank"), Code(3, b"nonsense")]
    gateway = asyncio.run(followed(messages, lambda g: "version 3" in (g.unavailable_reason or "")))
    assert "version 3 of the app cannot be served here: PackageRefused" in (gateway.unavailable_reason or "")
    assert gateway.version == 0


def test_another_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.cluster.gateway.process.RECONNECT_SECONDS", 0.001)
    with pytest.raises(ConfigurationError, match=r"now coordinates app 'shop'.*this gateway serves 'bank'"):
        asyncio.run(followed([deployment("bank"), deployment("shop")], lambda _: False))


def first_version() -> list[Serve | Code]:
    return [deployment("bank"), Code(1, pack(App("bank", []), SECURITY.secret))]


def test_a_step_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(_: Requester) -> None:
        await asyncio.Event().wait()

    def stuck(gateway: GatewayProcess) -> bool:
        return "following the coordinator has made no progress" in (gateway.broken_reason or "")

    monkeypatch.setattr("styx.cluster.gateway.process.RECONNECT_SECONDS", 0.001)
    monkeypatch.setattr(Requester, "start", hang)
    monkeypatch.setattr("styx.cluster.gateway.process.STUCK_SECONDS", 0.05)
    asyncio.run(followed(first_version(), stuck))


def test_waits_for_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.cluster.gateway.process.RECONNECT_SECONDS", 0.001)
    gateway = asyncio.run(followed(first_version(), lambda g: "Kafka" in (g.unavailable_reason or "")))
    assert gateway.broken_reason is None
    assert (gateway.unavailable_reason or "").startswith("the gateway waits for Kafka: ")


def test_a_gateway_of_another_release_goes_on_no_more() -> None:
    """Its coordinator was replaced; Kafka would take what it sends, and workers that read it otherwise."""

    async def coordinator(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        challenge = msgspec.msgpack.encode(("styx", VERSION + 1, bytes(32)))
        writer.write(prefix_of(len(challenge)) + challenge)
        await writer.drain()
        writer.close()

    async def refused() -> GatewayProcess:
        server = await asyncio.start_server(coordinator, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        gateway = GatewayProcess("g", SECURITY, f"{host}:{port}", parse_kafka_url("kafka://127.0.0.1:1"))
        gateway._requester = cast(Any, SimpleNamespace(unavailable_reason=None))
        running = asyncio.ensure_future(gateway.run())
        while gateway.unavailable_reason is None:  # noqa: ASYNC110 - a gateway is no event source
            await asyncio.sleep(0.005)
        running.cancel()
        await asyncio.wait([running])
        server.close()
        return gateway

    gateway = asyncio.run(asyncio.wait_for(refused(), PATIENCE_SECONDS))
    assert f"it is of a release with version {VERSION + 1} of the protocol" in (gateway.unavailable_reason or "")
    with pytest.raises(RequestRejected, match="nothing was sent"):
        gateway.submit_request(cast(Placed, None))
