"""An HTTP connection without a network: a test feeds it bytes and looks at what it writes; its time is the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from styx.http.connection import HttpConnection
from styx.http.direct import Direct
from styx.http.room import HttpLimits, Room

Application = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]
TURNS = 20
"""Of the event loop: more than any step here takes."""


class Wire(asyncio.Transport):
    """What a connection is given as its transport."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: HttpConnection | None = None
        self.written = b""
        self.ended = self.closed = self.aborted = self.paused = False
        self.unsent = 0  # bytes that the peer does not take

    def write(self, data: Any) -> None:
        assert not self.closed
        assert not self.ended
        self.written += bytes(data)

    def write_eof(self) -> None:
        self.ended = True

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True
        if self.protocol is not None and not self.unsent:
            asyncio.get_running_loop().call_soon(self._lost)

    def abort(self) -> None:
        self.aborted = self.closed = True
        asyncio.get_running_loop().call_soon(self._lost)

    def _lost(self) -> None:
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(None)

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class Peer:
    """A client and its connection."""

    def __init__(self, application: Application, room: Room, direct: Direct | None = None) -> None:
        config = uvicorn.Config(application, http=HttpConnection, lifespan="off", log_config=None, ws="none")
        config.load()
        self.wire = Wire()
        self.state = ServerState()
        loop = asyncio.get_running_loop()
        self.connection = HttpConnection(config, self.state, {}, loop, room=room, direct=direct)
        self.wire.protocol = self.connection
        self.connection.connection_made(self.wire)
        self.began = asyncio.get_running_loop().time()

    async def send(self, *parts: bytes) -> bytes:
        """Sends them one by one; what has been written so far."""
        for part in parts:
            if self.wire.protocol is not None and not self.wire.paused:
                self.connection.data_received(part)
            await turns()
        await turns()
        return self.wire.written

    async def after(self, seconds: float) -> bytes:
        """What has been written when so much time has passed since the connection began."""
        self.connection.look(self.began + seconds)
        await turns()
        return self.wire.written


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


def room_of(connections_max: int = 100, refusals: list[str] | None = None) -> Room:
    heard: list[str] = [] if refusals is None else refusals
    return Room(HttpLimits(connections_max, 75.0), heard.append)
