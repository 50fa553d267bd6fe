"""Strangers are refused, counted and bounded, and disturb nobody."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Any

import msgspec
import pytest

from styx.errors import ConfigurationError
from styx.transport import Connection, Refusal, Refused, Security, dial, listen, listener
from styx.transport.frame import prefix_of
from styx.transport.handshake import DialerHandshake
from tests.transport.peers import SECRET, End, assert_serves, hello_of, listening, raw_peer, until

pytestmark = pytest.mark.anyio


async def test_a_peer_with_another_secret(security: Security, caplog: pytest.LogCaptureFixture) -> None:
    async with listening(security) as (serving, connections):
        for _ in range(3):
            with pytest.raises(Refused, match=f"{serving.address}: the peer refused: it has another secret") as caught:
                await dial(serving.address, Security(b"wrong", "c1"), hello_of("a"), 30)
            assert caught.value.refusal is Refusal.SECRET
        await until(lambda: serving.handshakes == 0)
        assert serving.refused == 3
        assert connections.empty()
        [line] = [record.getMessage() for record in caplog.records]  # once for a host and a reason
        assert "127.0.0.1" in line
        assert "another secret" in line
        assert "wrong" not in line
        await assert_serves(serving, connections, security)


async def test_a_peer_of_another_cluster(security: Security) -> None:
    async with listening(security) as (serving, _):
        with pytest.raises(Refused, match="another cluster") as caught:
            await dial(serving.address, Security(SECRET, "c2"), hello_of("a", cluster="c2"), 30)
        assert caught.value.refusal is Refusal.CLUSTER


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        prefix_of(1 << 30),
        prefix_of(4097),
        prefix_of(4097) + bytes(10_000),
        prefix_of(0),
        prefix_of(5) + b"hello",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        os.urandom(4) + bytes(100_000),
    ],
)
async def test_garbage_is_refused_without_waiting(security: Security, garbage: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS_MAX", 1000.0)
    async with listening(security) as (serving, connections), raw_peer(serving) as raw:
        raw.send(garbage)
        answer = await raw.read_to_end()
        assert len(answer) < 64
        await until(lambda: serving.handshakes == 0)
        assert serving.refused == 1
        await assert_serves(serving, connections, security)


async def test_messages_before_the_proof_are_not_read(security: Security) -> None:
    async with listening(security) as (serving, connections), raw_peer(serving) as raw:
        raw.send_frame(DialerHandshake(SECRET, hello_of("raw")).start() or b"")
        raw.send_frame(b"let me in")
        await raw.read_to_end()
        await until(lambda: serving.refused == 1)
        assert connections.empty()


async def test_a_recorded_handshake_lets_nobody_in(security: Security) -> None:
    async with listening(security) as (serving, connections):
        handshake = DialerHandshake(SECRET, hello_of("victim"))
        async with raw_peer(serving) as raw:
            challenge = handshake.start()
            assert challenge is not None
            raw.send_frame(challenge)
            proof = handshake.receive(await raw.read_frame())
            assert proof is not None
            raw.send_frame(proof)
            await raw.read_frame()
            (await connections.get()).abort()
        async with raw_peer(serving) as raw:
            raw.send_frame(challenge)
            await raw.read_frame()
            raw.send_frame(proof)
            assert msgspec.msgpack.decode(await raw.read_frame()) == ["refused", "secret"]
            assert await raw.read_to_end() == b""
        assert connections.empty()


async def test_a_peer_that_hangs_up_is_counted(security: Security) -> None:
    async with listening(security) as (serving, connections):
        async with raw_peer(serving):
            pass
        await until(lambda: serving.refused == 1)
        await assert_serves(serving, connections, security)


async def test_a_slow_handshake_ends(security: Security, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS_MAX", 0.05)
    async with listening(security) as (serving, _), raw_peer(serving) as raw:
        payload = DialerHandshake(SECRET, hello_of("raw")).start() or b""
        raw.send(prefix_of(len(payload)) + payload[:-1])  # all but one byte
        assert await raw.read_to_end() == b""
        await until(lambda: serving.refused == 1)
        assert "did not prove itself within 0.05 s" in caplog.text


async def test_silent_strangers_keep_nobody_out(security: Security, monkeypatch: Any) -> None:
    monkeypatch.setattr(listener, "UNAUTHENTICATED_MAX", 4)
    monkeypatch.setattr(listener, "CROWDED_HANDSHAKE_SECONDS_MAX", 0.05)
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS_MAX", 1000.0)
    async with listening(security) as (serving, connections):
        host, port = serving.address.split(":")
        strangers = [await asyncio.open_connection(host, int(port)) for _ in range(9)]
        most = 0

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, serving.handshakes)
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        await assert_serves(serving, connections, security)
        watching.cancel()
        assert most == 4
        assert serving.refused >= 5
        for _, writer in strangers:
            writer.transport.abort()
        await until(lambda: serving.handshakes == 0)


async def test_many_connects_at_once_all_get_in(security: Security) -> None:
    count = 3 * listener.UNAUTHENTICATED_MAX
    async with listening(security) as (serving, connections):
        dials = (dial(serving.address, security, hello_of(f"w{number}"), 60) for number in range(count))
        dialed = await asyncio.gather(*dials)
        accepted = [await connections.get() for _ in dialed]
        assert {connection.peer.name for connection in accepted} == {f"w{number}" for number in range(count)}
        assert serving.refused == 0
        for connection in (*dialed, *accepted):
            connection.abort()


async def test_a_pause_of_the_listener_is_no_peers_fault(security: Security, monkeypatch: Any) -> None:
    monkeypatch.setattr(listener, "UNAUTHENTICATED_MAX", 2)
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS_MAX", 1000.0)
    async with listening(security) as (serving, connections):
        async with raw_peer(serving), raw_peer(serving):
            await until(lambda: serving.handshakes == 2)
            time.sleep(1.5 * listener.CROWDED_HANDSHAKE_SECONDS_MAX)  # noqa: ASYNC251 - the process stands still
            for _ in range(20):
                await asyncio.sleep(0)
            assert serving.handshakes == 2
        await assert_serves(serving, connections, security)


async def test_closing_ends_handshakes_and_keeps_connections(security: Security) -> None:
    async with listening(security) as (serving, connections):
        dialed = await dial(serving.address, security, hello_of("a"), 30)
        accepted = await connections.get()
        b = End(accepted)
        async with raw_peer(serving) as raw:
            await until(lambda: serving.handshakes == 1)
            await serving.close()
            assert await raw.read_to_end() == b""
        with pytest.raises(ConnectionRefusedError, match=r"cannot be reached.*Does anything listen there\?"):
            await dial(serving.address, security, hello_of("late"), 30)
        dialed.send(b"still here")
        assert await b.until_received(1) == [b"still here"]
        dialed.abort()
        accepted.abort()


async def test_an_error_of_the_receiver_ends_that_connection_only(security: Security) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    connections: asyncio.Queue[Connection] = asyncio.Queue()

    def fail_once(connection: Connection) -> None:
        if connection.peer.name == "unlucky":
            raise KeyError("unlucky")
        connections.put_nowait(connection)

    serving = await listen("127.0.0.1", 0, security, hello_of("b"), fail_once)
    unlucky = End(await dial(serving.address, security, hello_of("unlucky"), 30))
    await unlucky.until_lost()
    assert isinstance(reported[0]["exception"], KeyError)
    await assert_serves(serving, connections, security)
    await serving.close()


async def test_a_failing_accept_is_tried_again(security: Security, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr(listener, "_ACCEPT_PAUSE_SECONDS", 0.01)
    async with listening(security) as (serving, connections):
        loop = asyncio.get_running_loop()
        failures = [OSError(24, "Too many open files")]

        class Failing:
            def __getattr__(self, name: str) -> Any:
                return getattr(loop, name)

            async def sock_accept(self, listening_socket: Any) -> Any:
                if failures:
                    raise failures.pop()
                return await loop.sock_accept(listening_socket)

        serving._loop = Failing()  # type: ignore[assignment]
        await assert_serves(serving, connections, security)  # the accept under way
        await assert_serves(serving, connections, security)
        assert "cannot accept connections at the moment: [Errno 24]" in caplog.text


async def test_what_cannot_work_is_said_at_once(security: Security) -> None:
    def unused(connection: Connection) -> None:
        raise AssertionError(connection)

    with pytest.raises(ConfigurationError, match="of cluster 'c1' says it is of 'c2'"):
        await listen("127.0.0.1", 0, security, hello_of("a", cluster="c2"), unused)
    with pytest.raises(ConfigurationError, match="shorten the facts"):
        await listen("127.0.0.1", 0, security, hello_of("x" * 5000), unused)
    async with listening(security) as (serving, _):
        with pytest.raises(OSError, match="in use"):
            await listen("127.0.0.1", int(serving.address.split(":")[1]), security, hello_of("a"), unused)


async def test_ipv6(security: Security) -> None:
    connections: asyncio.Queue[Connection] = asyncio.Queue()
    try:
        serving = await listen("::1", 0, security, hello_of("b"), connections.put_nowait)
    except OSError:
        pytest.skip("no IPv6 here")
    assert serving.address.startswith("[::1]:")
    await assert_serves(serving, connections, security)
    await serving.close()


def test_refusals_remember_a_bounded_number(caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    monkeypatch.setattr(listener, "REMEMBERED_MAX", 2)
    caplog.set_level(logging.WARNING)
    remembered = listener.Refusals()
    for host, refusal in [("a", "secret"), ("a", "secret"), ("a", "tls"), ("a", "secret"), ("b", "tls")]:
        remembered.add(host, Refused(Refusal(refusal), "no"))
    assert remembered.count == 5
    assert len(caplog.records) == 3
    remembered.add("a", Refused(Refusal.SECRET, "no"))  # seen of late
    assert len(caplog.records) == 3
    remembered.add("a", Refused(Refusal.TLS, "no"))  # forgotten
    assert len(caplog.records) == 4
    assert len(remembered._logged) == 2
