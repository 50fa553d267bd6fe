"""Connecting: every way to fail is a clear error in time."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from styx.errors import ConfigurationError
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Refusal, Refused, Security, dial
from styx.transport.frame import prefix_of
from styx.transport.handshake import ListenerHandshake
from tests.transport.peers import SECRET, End, hello_of

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def impostor(first: bytes, then_close: bool) -> AsyncIterator[str]:
    """The address of something else than a listener: sends some bytes, and perhaps hangs up. Otherwise the test
    fails unless the dialer does.
    """
    over = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(first)
        try:
            await reader.read(100 if then_close else -1)
        except ConnectionResetError:
            pass
        writer.close()
        over.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield "{}:{}".format(*server.sockets[0].getsockname())
        async with asyncio.timeout(PATIENCE_SECONDS):  # of no consequence unless it hangs
            await over.wait()
    finally:
        for writer in writers:
            writer.transport.abort()
        server.close()


@pytest.mark.parametrize(
    ("first", "then_close", "refusal"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", True, Refusal.MALFORMED),
        (prefix_of(1 << 30), False, Refusal.MALFORMED),
        (prefix_of(3) + b"abc", False, Refusal.MALFORMED),
        (b"", True, Refusal.HUNG_UP),
        (prefix_of(10), True, Refusal.HUNG_UP),
    ],
)
async def test_something_else_listens(security: Security, first: bytes, then_close: bool, refusal: Refusal) -> None:
    async with impostor(first, then_close) as address:
        with pytest.raises(Refused, match=re.escape(address)) as caught:
            await dial(address, security, hello_of("a"), 30)
        assert caught.value.refusal is refusal


async def test_messages_that_follow_the_handshake_at_once_are_delivered(security: Security) -> None:
    large = bytes(10_000)  # a handshake could not have it

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handshake = ListenerHandshake(SECRET, hello_of("b"))
        answer = b""
        while handshake.peer is None:
            payload = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            answer = handshake.receive(payload) or b""
            if handshake.peer is None:
                writer.write(prefix_of(len(answer)) + answer)
        writer.write(b"".join(prefix_of(len(payload)) + payload for payload in (answer, b"at once", large)))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        dialed = await dial("{}:{}".format(*server.sockets[0].getsockname()), security, hello_of("a"), 30)
        a = End(dialed)
        assert await a.until_lost() == "closed by the peer"
        assert a.received == [b"at once", large]


async def test_a_listener_that_never_answers(security: Security) -> None:
    async with impostor(b"", False) as address:
        with pytest.raises(TimeoutError, match=rf"{address} did not answer within 0.05 s"):
            await dial(address, security, hello_of("a"), 0.05)


async def test_a_cancelled_dial_leaves_nothing_open(security: Security) -> None:
    async with impostor(b"", False) as address:
        dialing = asyncio.create_task(dial(address, security, hello_of("a"), 30))
        await asyncio.sleep(0.02)
        dialing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialing


async def test_nobody_listens(security: Security) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = "{}:{}".format(*closed.getsockname())
    with pytest.raises(ConnectionRefusedError, match=rf"{address} cannot be reached"):
        await dial(address, security, hello_of("a"), 30)


async def test_a_name_that_does_not_exist(security: Security) -> None:
    with pytest.raises(ConnectionError, match=r"no-such-host\.invalid:7700 cannot be reached"):
        await dial("no-such-host.invalid:7700", security, hello_of("a"), 30)


async def test_what_cannot_work_is_said_at_once(security: Security) -> None:
    with pytest.raises(ConfigurationError, match="no address"):
        await dial("7700", security, hello_of("a"), 30)
    with pytest.raises(ConfigurationError, match="of cluster 'c1' says it is of 'c2'"):
        await dial("127.0.0.1:1", security, hello_of("a", cluster="c2"), 30)
