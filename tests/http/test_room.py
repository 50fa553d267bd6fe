"""Who may stay when there are too many connections."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from styx.http.room import DESCRIPTORS_KEPT, HttpLimits, Room, allow_descriptors, descriptors_max
from tests.http.test_connection import WHOLE, Server
from tests.http.wire import Peer, room_of, turns

pytestmark = pytest.mark.anyio


async def test_those_that_say_nothing_make_room() -> None:
    server, refusals = Server(), list[str]()
    room = room_of(3, refusals)
    served = Peer(server, room)
    await served.send(WHOLE)
    silent = [Peer(server, room) for _ in range(10)]
    await turns()
    assert [peer.wire.closed for peer in silent] == [True] * 8 + [False] * 2
    assert refusals == ["crowded_out"] * 8
    assert b"ok 2" in await served.send(WHOLE)
    assert len(room) == 3


async def test_those_that_were_served_make_room_last_and_the_oldest_first() -> None:
    server = Server()
    room = room_of(3)
    peers = [Peer(server, room) for _ in range(3)]
    for peer in peers:
        await peer.send(WHOLE)
    await peers[0].send(WHOLE)
    late = Peer(server, room)
    await turns()
    assert [peer.wire.closed for peer in peers] == [False, True, False]
    assert b" 200 OK" in await late.send(WHOLE)


async def test_no_request_is_cut_off_for_another() -> None:
    server, refusals = Server(), list[str]()
    server.go.clear()
    room = room_of(3, refusals)
    busy = [Peer(server, room) for _ in range(3)]
    for peer in busy:
        await peer.send(WHOLE)
    late = Peer(server, room)
    written = await late.send()
    assert written.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in written
    assert refusals == ["connections"]
    server.go.set()
    await turns()
    assert all(b" 200 OK" in peer.wire.written for peer in busy)


async def test_refused_ones_that_linger_make_room() -> None:
    server = Server()
    room = room_of(3)
    refused = [Peer(server, room) for _ in range(3)]
    for peer in refused:
        await peer.send(b"garbage\r\n\r\n")
    late = Peer(server, room)
    await turns()
    assert [peer.wire.aborted for peer in refused] == [True, False, False]
    assert b" 200 OK" in await late.send(WHOLE)


@pytest.fixture
def descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("descriptors")
def test_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 < hard < 2000:
        pytest.skip("too few are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))
    assert descriptors_max() == 1000 - DESCRIPTORS_KEPT
    assert Room(HttpLimits(10_000, 75.0)).connections_max == 1000 - DESCRIPTORS_KEPT
    allow_descriptors(1500)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1500
    allow_descriptors(100)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1500, "never fewer"
    assert Room(HttpLimits(10, 75.0)).connections_max == 10
