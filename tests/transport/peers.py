"""Peers for tests: connected pairs that record what happens, and raw sockets that do not follow the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

from styx.transport import Connection, Hello, Listener, Security, dial, listen
from styx.transport.frame import prefix_of
from styx.transport.handshake import DialerHandshake, Role

SECRET = b"correct horse battery staple"


def hello_of(name: str, role: Role = "worker", cluster: str = "c1") -> Hello:
    return Hello(cluster=cluster, role=role, name=name, incarnation=f"{name}-1", facts={"cores": "2"})


class End:
    """One end of a connection, with everything that was delivered to it."""

    def __init__(self, connection: Connection, ping_seconds: float | None = None, silence_seconds: float | None = None):
        self.connection = connection
        self.received: list[bytes] = []
        self.lost: list[str] = []
        self._changed = asyncio.Event()
        connection.start(self._on_frames, self._on_lost, ping_seconds=ping_seconds, silence_seconds=silence_seconds)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    async def until_received(self, count: int) -> list[bytes]:
        await self.until(lambda: len(self.received) >= count)
        return self.received

    async def until_lost(self) -> str:
        await self.until(lambda: bool(self.lost))
        return self.lost[0]

    def _on_frames(self, connection: Connection, payloads: list[bytes]) -> None:
        assert connection is self.connection
        self.received += payloads
        self._changed.set()

    def _on_lost(self, connection: Connection, reason: str) -> None:
        assert connection is self.connection
        self.lost.append(reason)
        self._changed.set()


@asynccontextmanager
async def listening(security: Security) -> AsyncIterator[tuple[Listener, asyncio.Queue[Connection]]]:
    """A listener, and the connections that it handed on."""
    connections: asyncio.Queue[Connection] = asyncio.Queue()
    listener = await listen("127.0.0.1", 0, security, hello_of("b", "coordinator"), connections.put_nowait)
    try:
        yield listener, connections
    finally:
        await listener.close()
        while not connections.empty():
            connections.get_nowait().abort()


@asynccontextmanager
async def connected(security: Security) -> AsyncIterator[tuple[Connection, Connection]]:
    """The dialer's end and the listener's end, neither of them started."""
    async with listening(security) as (listener, connections):
        dialed = await dial(listener.address, security, hello_of("a"), 30)
        accepted = await connections.get()
        try:
            yield dialed, accepted
        finally:
            dialed.abort()
            accepted.abort()
            await asyncio.sleep(0)


class RawPeer:
    """A socket that sends what the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def send_frame(self, payload: bytes) -> None:
        self.send(prefix_of(len(payload)) + payload)

    async def read_frame(self) -> bytes:
        length = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(length)

    async def read_to_end(self) -> bytes:
        """Everything until the other side ends the connection, in whatever way."""
        data = b""
        try:
            while more := await self.reader.read(1 << 16):
                data += more
        except ConnectionResetError:
            pass
        return data

    async def authenticate(self, security: Security) -> None:
        """Follows the protocol up to the end of the handshake."""
        handshake = DialerHandshake(security.secret, hello_of("raw"))
        payload = handshake.start()
        while payload is not None:
            self.send_frame(payload)
            payload = handshake.receive(await self.read_frame())


@asynccontextmanager
async def raw_peer(listener: Listener) -> AsyncIterator[RawPeer]:
    host, port = cast("tuple[str, str]", tuple(listener.address.rsplit(":", 1)))
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield RawPeer(reader, writer)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def assert_serves(serving: Listener, connections: asyncio.Queue[Connection], security: Security) -> None:
    """A peer with the right secret gets in and its messages through."""
    dialed = await dial(serving.address, security, hello_of("good"), 30)
    a, b = End(dialed), End(await connections.get())
    dialed.send(b"hello")
    assert await b.until_received(1) == [b"hello"]
    dialed.close()
    await a.until_lost()
    await b.until_lost()


async def until(condition: Callable[[], bool]) -> None:
    """Until it is true; for what nobody is told of."""
    while not condition():  # noqa: ASYNC110 - counters have no event
        await asyncio.sleep(0.005)
