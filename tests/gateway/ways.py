"""A gateway and one connection to it, by the direct way or without it, to be compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from styx import Limits
from styx.gateway.app import Gateway
from styx.gateway.endpoint import CLIENT_GONE_STATUS
from styx.gateway.front import Entrance, Front
from styx.http.asgi import Application
from styx.http.direct_request import DirectRequest
from styx.http.room import HttpLimits, Room
from tests.gateway.fake_engine import FakeEngine
from tests.http.wire import Peer, turns

_ID: Final = re.compile(rb"[0-9a-f]{16}-")
FRONT: Final = Front(allowed_origins=("https://shop.example",))
LIMITS: Final = Limits(request_bytes_max=1024, value_bytes_max=512)


def request(
    line: str = "POST /v1/shelf/a/add",
    body: bytes | None = b"[2, 3]",
    *,
    version: str = "1.1",
    host: str | None = "localhost",
    kind: str | None = "application/json",
    **headers: str,
) -> bytes:
    """A request as it is sent; underscores in headers' names stand for hyphens."""
    lines = [f"{line} HTTP/{version}"]
    lines += [] if host is None else [f"Host: {host}"]
    lines += [] if kind is None else [f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [] if body is None else [f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


class Served(NamedTuple):
    """What came of a connection: all that both ways must have in common."""

    written: bytes
    ends: tuple[bool, bool, bool]
    requests: list[Any]
    by_status: dict[int, int]  # without requests that were cut off, which count if their turn had come
    refused: dict[str, int]
    in_flight: int
    pending: int


class Way:
    """A gateway and one connection to it, by the direct way or without it."""

    def __init__(
        self,
        *,
        direct: bool,
        limits: Limits = LIMITS,
        seconds: float = 30.0,
        front: Front = FRONT,
        around: Callable[[Application], Any] | None = None,
    ) -> None:
        self.engine = FakeEngine(limits)
        self.gateway = Gateway(self.engine, seconds)
        entrance = Entrance(self.gateway, front, front.rules("localhost", "127.0.0.1"))
        wrapped: Any = entrance.application if around is None else around(entrance.application)
        way = entrance.direct if around is None else wrapped.around(entrance.direct)
        self.taken: list[DirectRequest] = []
        room = Room(HttpLimits(100, 75.0), self.gateway.metrics.refused)
        self.peer = Peer(wrapped, room, _Noted(way, self.taken) if direct else None)

    async def send(self, *parts: bytes) -> None:
        """As a socket does: not while the connection does not read, and nothing once it is closed."""
        for part in parts:
            if self.peer.wire.paused:
                await turns()
            if self.peer.wire.protocol is not None and not self.peer.wire.paused:
                self.peer.connection.data_received(part)
            await turns()

    async def leave(self) -> None:
        """The client goes, whatever it still waits for."""
        self.peer.wire.abort()
        await turns()

    def served(self) -> Served:
        wire, metrics = self.peer.wire, self.gateway.metrics
        return Served(
            _ID.sub(b"ID-", wire.written),
            (wire.closed, wire.ended, wire.aborted),
            [
                (each.operator, each.key, each.function, each.params, each.idempotency_key)
                for each in self.engine.requests
            ],
            {code: count for code, count in metrics._by_status.items() if code != CLIENT_GONE_STATUS},
            metrics._refused,
            metrics.in_flight,
            self.peer.connection._in_flight,
        )


class _Noted:
    """A direct way that notes which requests it serves."""

    def __init__(self, direct: Any, taken: list[DirectRequest]) -> None:
        self.takes = direct.takes
        self._direct = direct
        self._taken = taken

    def serve(self, request: DirectRequest) -> None:
        self._taken.append(request)
        self._direct.serve(request)


async def both(*parts: bytes, **options: Any) -> tuple[Way, Way]:
    """Sends them both ways, and compares what came of it. Returns the ways: the direct one first."""
    ways = Way(direct=True, **options), Way(direct=False, **options)
    for way in ways:
        await way.send(*parts)
    served = [way.served() for way in ways]
    for way in ways:
        await way.leave()
    assert served[0] == served[1]
    assert ways[0].served() == ways[1].served()
    return ways


async def held(*parts: bytes, **options: Any) -> tuple[Way, Way]:
    """Both ways, with engines that hold the requests."""
    ways = Way(direct=True, **options), Way(direct=False, **options)
    for way in ways:
        way.engine.hold()
        await way.send(*parts)
    assert ways[0].taken
    return ways
