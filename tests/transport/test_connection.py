"""Payloads arrive in order and in few writes; every connection ends once, with a reason."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from styx.errors import ConfigurationError
from styx.transport import FRAME_BYTES_MAX, Connection, FrameTooLarge, Security, connection
from styx.transport.frame import prefix_of
from styx.transport.socket_options import HALF_OPEN_SECONDS
from tests.transport.peers import End, connected, listening, raw_peer, until

pytestmark = pytest.mark.anyio


class Collected:
    """What one pass of the event loop wrote, seen at the transport."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.writes: list[int] = []
        transport: Any = connection._transport
        self._transport = transport
        connection._transport = self  # type: ignore[assignment]

    def write(self, data: bytes) -> None:
        self.writes.append(len(data))
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


async def test_payloads_arrive_in_order_both_ways(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        a, b = End(dialed), End(accepted)
        sent = [str(number).encode() * (number % 50 + 1) for number in range(5000)]
        for start in range(0, len(sent), 700):
            for payload in sent[start : start + 700]:
                dialed.send(payload)
                accepted.send(bytearray(payload))
            await asyncio.sleep(0)
        assert await a.until_received(len(sent)) == sent
        assert await b.until_received(len(sent)) == sent
        assert dialed.peer.name == "b"
        assert accepted.peer.name == "a"
        assert accepted.peer.facts == {"cores": "2"}


async def test_a_pass_is_one_write(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        collected, b = Collected(dialed), End(accepted)
        for _ in range(1000):
            dialed.send(b"x" * 10)
        assert collected.writes == []
        await asyncio.sleep(0)
        assert collected.writes == [1000 * 14]
        dialed.send(b"y")
        await b.until_received(1001)
        assert collected.writes == [14_000, 5]
        assert (dialed.writes, dialed.frames_sent, dialed.bytes_sent) == (2, 1001, 14_005)
        assert (accepted.frames_received, accepted.bytes_received) == (1001, 14_005)
        assert accepted.reads < 20


async def test_a_long_pass_keeps_no_more_than_a_write_of_frames(security: Security, monkeypatch: Any) -> None:
    monkeypatch.setattr(connection, "WRITE_FRAMES_MAX", 10)
    async with connected(security) as (dialed, accepted):
        collected, b = Collected(dialed), End(accepted)
        payloads = [bytes([number]) for number in range(25)]
        for payload in payloads:
            dialed.send(payload)
        assert collected.writes == [50, 50]
        assert await b.until_received(25) == payloads
        assert collected.writes == [50, 50, 25]


async def test_a_payload_longer_than_a_frame_comes_whole(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        b = End(accepted)
        sizes = (1, FRAME_BYTES_MAX + 1, 2, 3 * FRAME_BYTES_MAX, FRAME_BYTES_MAX, 3)
        for number, size in enumerate(sizes):
            dialed.send(bytes([number]) * size)
        received = await b.until_received(len(sizes))
        assert [(len(payload), payload[:1], payload[-1:]) for payload in received] == [
            (size, bytes([number]), bytes([number])) for number, size in enumerate(sizes)
        ]
        assert dialed.frames_sent == accepted.frames_received == len(sizes)


async def test_writes_of_large_payloads_are_bounded(security: Security, monkeypatch: Any) -> None:
    monkeypatch.setattr(connection, "WRITE_BYTES_MAX", 1000)
    async with connected(security) as (dialed, accepted):
        collected, b = Collected(dialed), End(accepted)
        for _ in range(6):
            dialed.send(bytes(600))
        await b.until_received(6)
        assert max(collected.writes) <= 1000 + 604


async def test_the_largest_payload_passes_and_a_larger_one_is_not_sent(
    security: Security, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PAYLOAD_BYTES_MAX", FRAME_BYTES_MAX)
    async with connected(security) as (dialed, accepted):
        b = End(accepted)
        with pytest.raises(FrameTooLarge, match=str(FRAME_BYTES_MAX + 1)):
            dialed.send(bytes(FRAME_BYTES_MAX + 1))
        with pytest.raises(ValueError, match="empty"):
            dialed.send(b"")
        dialed.send(bytes(FRAME_BYTES_MAX))
        dialed.send(b"after")
        large, small = await b.until_received(2)
        assert len(large) == FRAME_BYTES_MAX
        assert small == b"after"


async def test_nothing_is_delivered_before_start_and_nothing_is_lost(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        accepted.send(b"early")
        End(accepted)
        for _ in range(20):
            await asyncio.sleep(0)
        a = End(dialed)
        assert a.received == []
        assert await a.until_received(1) == [b"early"]


async def test_what_came_with_the_end_of_the_handshake_is_delivered(security: Security) -> None:
    async with connected(security) as (dialed, _):
        early = Connection(dialed._transport, dialed.peer, prefix_of(1) + b"x" + prefix_of(2) + b"y")
        dialed._transport.set_protocol(early)
        a = End(early)
        assert await a.until_received(1) == [b"x"]
        early.data_received(b"z")
        assert a.received == [b"x", b"yz"]


async def test_both_sides_are_told_once_of_a_close(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        a, b = End(dialed), End(accepted)
        dialed.send(b"last")
        dialed.close()
        assert dialed.closed
        assert a.lost == []  # never from within
        dialed.send(b"nobody gets this")
        dialed.close()
        dialed.abort()
        assert await b.until_lost() == "closed by the peer"
        assert b.received == [b"last"]
        assert await a.until_lost() == "closed here"
        await asyncio.sleep(0.01)
        assert (len(a.lost), len(b.lost)) == (1, 1)


async def test_an_abort_says_the_reason_given(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        a, b = End(dialed), End(accepted)
        dialed.send(b"never leaves")
        dialed.abort("its generation is over")
        assert await a.until_lost() == "its generation is over"
        assert await b.until_lost()
        assert b.received == []


async def test_a_connection_lost_before_start_is_told_after_it(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        accepted.abort()
        dialed.abort("gone")
        for _ in range(5):
            await asyncio.sleep(0)
        a = End(dialed, ping_seconds=1)
        assert a.lost == []
        assert await a.until_lost() == "gone"


async def test_a_connection_lost_while_it_starts_is_told_once(security: Security) -> None:
    async with connected(security) as (dialed, _):
        dialed.abort("gone")
        a = End(dialed)
        await a.until_lost()
        await asyncio.sleep(0.01)
        assert a.lost == ["gone"]


async def test_a_peer_that_takes_nothing_is_cut_off_at_the_limit(security: Security, monkeypatch: Any) -> None:
    limit = 8 * 1024 * 1024
    monkeypatch.setattr(connection, "SEND_BUFFER_BYTES_MAX", limit)
    async with connected(security) as (dialed, _accepted_but_never_read):
        a = End(dialed)
        sent = 0
        while not dialed.closed:
            dialed.send(bytes(100_000))
            sent += 100_004
            if sent % 16 == 0:
                await asyncio.sleep(0)
            assert dialed._transport.get_write_buffer_size() <= limit
        assert sent > limit
        assert "it is too slow: over 8388608 bytes" in await a.until_lost()


async def test_one_pass_cannot_exceed_the_limit_either(security: Security, monkeypatch: Any) -> None:
    monkeypatch.setattr(connection, "SEND_BUFFER_BYTES_MAX", 1000)
    async with connected(security) as (dialed, accepted):
        a, b = End(dialed), End(accepted)
        for _ in range(10):
            dialed.send(bytes(96))
        assert len(await b.until_received(10)) == 10
        for _ in range(11):
            dialed.send(bytes(96))
        assert "too slow" in await a.until_lost()
        await b.until_lost()
        assert len(b.received) == 10


async def test_a_frame_over_the_limit_breaks_the_connection(security: Security) -> None:
    async with listening(security) as (listener, connections), raw_peer(listener) as raw:
        await raw.authenticate(security)
        b = End(await connections.get())
        raw.send_frame(b"fine")
        raw.send(prefix_of(1 << 30))
        assert "it broke the protocol: a frame of 1073741824 bytes" in await b.until_lost()
        assert await raw.read_to_end() == b""


async def test_a_frame_cut_off_is_said(security: Security) -> None:
    async with listening(security) as (listener, connections), raw_peer(listener) as raw:
        await raw.authenticate(security)
        b = End(await connections.get())
        raw.send(prefix_of(10) + b"half")
        raw._writer.close()
        assert await b.until_lost() == "closed by the peer in the middle of a frame"
    assert b.received == []


@pytest.mark.parametrize("leftover", [False, True])
async def test_an_error_of_the_receiver_ends_the_connection(security: Security, leftover: bool) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def fail(_: Connection, payloads: list[bytes]) -> None:
        raise KeyError(payloads[0])

    async with connected(security) as (dialed, accepted):
        if leftover:
            accepted._received = prefix_of(1) + b"x"
        accepted.start(fail, lambda _, reason: lost.set_result(reason))
        dialed.send(b"x")
        assert await lost == "its messages could not be handled: KeyError: b'x'"
        await asyncio.sleep(0)
    assert isinstance(reported[0]["exception"], KeyError)


async def test_pings_keep_an_idle_connection_and_are_not_delivered(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        a, b = End(dialed, 0.01, 10), End(accepted, 0.01, 10)
        await until(lambda: min(accepted.bytes_received, dialed.bytes_received) >= 20)
        assert (a.received, b.received, a.lost, b.lost) == ([], [], [], [])
        assert accepted.frames_received == dialed.frames_sent == 0


async def test_no_ping_where_there_is_other_traffic(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        End(accepted)
        collected = Collected(dialed)
        seen = (dialed.bytes_sent, dialed.bytes_received)
        dialed.send(b"x")
        dialed._tick(1000, 2, 0, seen)
        await asyncio.sleep(0)
        dialed._tick(1000, 2, 0, seen)
        assert collected.writes == [5]


async def test_a_peer_that_never_answers_is_noticed(security: Security) -> None:
    async with listening(security) as (listener, connections), raw_peer(listener) as raw:
        await raw.authenticate(security)
        b = End(await connections.get(), ping_seconds=0.01, silence_seconds=0.03)
        assert await b.until_lost() == "nothing came from it for 0.03 s"
        assert await raw.read_to_end() in (bytes(8), bytes(12))  # it was asked


async def test_silence_is_counted_in_own_ticks(security: Security) -> None:
    async with connected(security) as (dialed, accepted):
        End(dialed)
        b = End(accepted)
        nothing = (accepted.bytes_sent, accepted.bytes_received)
        accepted._tick(1000, 2, 0, nothing)
        assert not accepted.closed
        accepted._tick(1000, 2, 1, (accepted.bytes_sent, -1))  # something came
        assert not accepted.closed
        accepted._tick(1000, 2, 1, (accepted.bytes_sent, accepted.bytes_received))
        assert "nothing came from it" in await b.until_lost()


@pytest.mark.parametrize(("ping", "silence"), [(0, None), (-1, 5), (None, 5), (1, 1.9)])
async def test_timings_that_cannot_work_are_refused(security: Security, ping: Any, silence: Any) -> None:
    async with connected(security) as (dialed, _):
        with pytest.raises(ConfigurationError, match="ping_seconds"):
            End(dialed, ping, silence)


async def test_the_kernel_watches_for_vanished_peers(security: Security) -> None:
    async with connected(security) as pair:
        for connection in pair:
            connected_socket = connection._transport.get_extra_info("socket")
            assert connected_socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert connected_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                user_timeout = connected_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                assert user_timeout == 1000 * HALF_OPEN_SECONDS


@pytest.mark.slow
async def test_a_peer_that_stops_reading_is_noticed_by_the_kernel(security: Security) -> None:
    if not hasattr(socket, "TCP_USER_TIMEOUT"):
        pytest.skip("only Linux watches for it")
    async with connected(security) as (dialed, _accepted_but_never_read):
        a = End(dialed)
        for _ in range(40):
            dialed.send(bytes(1 << 20))
        assert "TimeoutError" in await a.until_lost()
