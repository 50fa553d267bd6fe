"""One connection and its limits: slow, long and malformed requests end with an answer that says why; what a client
sends behind a request never changes that request's answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from styx.http.room import FRAMING_BYTES_MAX, HEADER_BYTES_MAX, HEADER_SECONDS_MAX, UNREAD_SECONDS_MAX
from tests.http.wire import Peer, room_of, turns

pytestmark = pytest.mark.anyio

POST = b"POST /v1/a/b/c HTTP/1.1\r\nHost: x\r\n"
WHOLE = POST + b"Content-Length: 2\r\n\r\n[]"
NEVER = 10**9


class Server:
    """Answers `ok N BODY`, with the number of the request; `hold` lets requests wait."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.gone = 0
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone += 1
                return
            body += message["body"]
            if not message.get("more_body"):
                break
        self.bodies.append(body)
        text = b"ok %d %b" % (len(self.bodies), body)
        await self.go.wait()
        headers = [(b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
def refusals() -> list[str]:
    return []


def error_in(written: bytes) -> str:
    """The message of the last answer."""
    text: str = json.loads(written[written.rindex(b"\r\n\r\n") :])["error"]["message"]
    return text


async def test_requests_one_after_the_other(server: Server, refusals: list[str]) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    await peer.send(WHOLE)
    written = await peer.send(*(bytes([byte]) for byte in WHOLE))
    assert (written.count(b" 200 OK"), written.count(b"ok 1 []"), written.count(b"ok 2 []")) == (2, 1, 1)
    assert not peer.wire.closed
    assert refusals == []


@pytest.mark.parametrize(
    ("target", "hosts"),
    [
        ("/v1/a/b/c", ["own"]),
        ("*", ["own"]),
        ("//other.example/v1", ["own"]),
        ("http://other.example/v1/a/b/c", ["other.example"]),
        ("https://other.example:8443/?x", ["other.example:8443"]),
        ("http://[::1]:80/", ["[::1]:80"]),
        ("http://own@other.example/", None),
        ("http:///v1", None),
    ],
)
async def test_a_host_in_the_target_is_the_one_that_is_asked(
    refusals: list[str], target: str, hosts: list[str] | None
) -> None:
    seen: list[str] = []

    async def application(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        seen.extend(value.decode() for name, value in scope["headers"] if name == b"host")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    peer = Peer(application, room_of(refusals=refusals))
    method = "OPTIONS" if target == "*" else "GET"
    written = await peer.send(f"{method} {target} HTTP/1.1\r\nHost: own\r\n\r\n".encode())
    if hosts is None:
        assert b" 400 " in written
        assert seen == []
    else:
        assert seen == hosts


async def test_a_client_that_says_nothing(server: Server, refusals: list[str]) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    await peer.after(HEADER_SECONDS_MAX - 1)
    assert not peer.wire.closed
    assert await peer.after(HEADER_SECONDS_MAX + 1) == b""
    assert peer.wire.closed
    assert refusals == ["silent"]


async def test_headers_that_come_slowly(server: Server, refusals: list[str]) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    for second in range(int(HEADER_SECONDS_MAX)):
        await peer.send(POST if not second else b"X-%d: y\r\n" % second)
        assert await peer.after(second) == b""
    written = await peer.after(HEADER_SECONDS_MAX + 1)
    assert written.startswith(b"HTTP/1.1 408 ")
    assert "headers did not arrive within 10 s" in error_in(written)
    assert (peer.wire.ended, refusals, server.bodies) == (True, ["slow_header"], [])


async def test_empty_lines_are_no_request(server: Server) -> None:
    peer = Peer(server, room_of())
    await peer.send(WHOLE, b"\r\n")
    await peer.after(60)
    assert not peer.wire.closed
    await peer.after(80)
    assert peer.wire.closed


async def test_the_second_request_has_its_own_time(server: Server) -> None:
    peer = Peer(server, room_of())
    await peer.send(WHOLE)
    await peer.after(60)
    assert not peer.wire.closed
    peer.connection._since += 60  # its first byte comes only now
    await peer.send(b"POST")
    peer.connection._since = peer.began + 60
    await peer.after(60 + HEADER_SECONDS_MAX - 1)
    assert not peer.wire.ended
    await peer.after(60 + HEADER_SECONDS_MAX + 1)
    assert peer.wire.ended


async def test_a_body_that_comes_slowly(server: Server, refusals: list[str]) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    await peer.send(POST + b"Content-Length: 100000\r\n\r\n", *[b"x"] * 20)
    assert await peer.after(20) == b""
    written = await peer.after(22)
    assert written.startswith(b"HTTP/1.1 408 ")
    assert "nothing was run" in error_in(written)
    assert (server.bodies, server.gone, refusals) == ([], 1, ["slow_body"])


async def test_a_long_body_has_longer(server: Server) -> None:
    peer = Peer(server, room_of())
    await peer.send(POST + b"Content-Length: 1000000\r\n\r\n", b"x" * 50_000)
    assert await peer.after(60) == b""
    assert b"408" in await peer.after(80)


async def test_a_function_that_takes_long_has_its_time(server: Server) -> None:
    server.go.clear()
    peer = Peer(server, room_of())
    await peer.send(WHOLE)
    await peer.after(NEVER)
    server.go.set()
    assert b" 200 OK" in await peer.send()
    assert not peer.wire.closed


@pytest.mark.parametrize("at_once", [True, False])
async def test_long_headers(server: Server, refusals: list[str], at_once: bool) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    header = POST + b"".join(b"X-%d: %b\r\n" % (n, b"y" * 1000) for n in range(HEADER_BYTES_MAX // 1000 + 1)) + b"\r\n"
    written = await peer.send(*([header] if at_once else [header[at : at + 999] for at in range(0, len(header), 999)]))
    assert written.startswith(b"HTTP/1.1 431 ")
    assert f"more than {HEADER_BYTES_MAX} bytes" in error_in(written)
    assert (written.count(b"HTTP/1.1"), peer.wire.ended, refusals, server.bodies) == (1, True, ["long_header"], [])


async def test_headers_just_short_enough_with_a_long_body_behind(server: Server) -> None:
    peer = Peer(server, room_of())
    header = POST + b"X: " + b"y" * (HEADER_BYTES_MAX - 1000) + b"\r\nContent-Length: 200000\r\n\r\n"
    assert b" 200 OK" in await peer.send(header + b" " * 200_000)


async def test_one_header_that_never_ends(server: Server) -> None:
    peer = Peer(server, room_of())
    written = await peer.send(POST + b"X: ", *[b"y" * 1000] * 100)
    assert written.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),  # TLS
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"NONSENSE / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET http://host HTTP/1.1\r\n\r\n",
        b"CONNECT host:80 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n: no name\r\n\r\n",
        b"GET / HTTP/1.1\r\nA b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\x00c\r\n\r\n",
        POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n[]",
        POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 1e3\r\n\r\n",
        POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
        POST + b"Content-Length: 0x10\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n",
        POST + b"Transfer-Encoding: gzip\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n[]\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n[]\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n[]\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]garbage\r\n0\r\n\r\n",
    ],
)
async def test_what_is_no_request(server: Server, refusals: list[str], garbage: bytes) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    written = await peer.send(garbage)
    assert written.startswith(b"HTTP/1.1 400 "), written
    assert written.count(b"HTTP/1.1 ") == 1
    assert 20 < len(error_in(written)) < 400
    assert peer.wire.ended
    assert (refusals, server.bodies) == (["malformed"], [])


@pytest.mark.parametrize("garbage", [b"garbage\r\n\r\n", POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"])
async def test_garbage_behind_a_request_waits_for_its_answer(server: Server, garbage: bytes) -> None:
    """A client that reads one answer for its one request must not be told that nothing was run, when something was."""
    server.go.clear()
    peer = Peer(server, room_of())
    assert await peer.send(WHOLE + garbage) == b""
    server.go.set()
    written = await peer.send()
    assert written.startswith(b"HTTP/1.1 200 OK")
    assert written.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 400 " in written
    assert peer.wire.ended
    assert server.bodies == [b"[]"]


async def test_requests_in_a_row_and_garbage_behind_them(server: Server) -> None:
    server.go.clear()
    peer = Peer(server, room_of())
    await peer.send(WHOLE * 3 + b"garbage\r\n\r\n")
    server.go.set()
    written = await peer.send()
    assert [written.count(b"ok %d []" % n) for n in (1, 2, 3)] == [1, 1, 1]
    assert written.index(b"ok 3 []") < written.index(b"HTTP/1.1 400 ")
    assert peer.wire.ended


async def test_a_body_that_breaks_off_behind_a_request(server: Server) -> None:
    server.go.clear()
    peer = Peer(server, room_of())
    await peer.send(WHOLE + POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n", b"zz\r\n")
    server.go.set()
    written = await peer.send()
    assert (written.count(b"200 OK"), server.bodies) == (1, [b"[]"])
    assert not peer.wire.written.count(b"ok 2")


async def test_chunks_with_more_around_them_than_in_them(server: Server, refusals: list[str]) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    long = b"1;" + b"x" * 1000 + b"\r\n \r\n"
    written = await peer.send(POST + b"Transfer-Encoding: chunked\r\n\r\n", *[long] * (FRAMING_BYTES_MAX // 1000 + 1))
    assert written.startswith(b"HTTP/1.1 400 ")
    assert (refusals, server.bodies) == (["framing"], [])


async def test_trailers_without_an_end(server: Server, refusals: list[str]) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n"
    await peer.send(head, *[b"X: " + b"y" * 1000 + b"\r\n"] * (FRAMING_BYTES_MAX // 1000 + 1))
    assert refusals == ["framing"]


async def test_chunks_of_one_byte_are_fine(server: Server) -> None:
    peer = Peer(server, room_of())
    written = await peer.send(POST + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n" * 10_000] * 3, b"0\r\n\r\n")
    assert b" 200 OK" in written
    assert server.bodies == [b" " * 30_000]


@pytest.mark.parametrize(
    "asks",
    [
        b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_another_protocol_is_not_spoken(server: Server, asks: bytes, size: int) -> None:
    """Some clients ask for HTTP/2 with their first request; it must not lose its body, and be run without it."""
    peer = Peer(server, room_of())
    asking = POST + asks + b"Content-Length: 4\r\n\r\n[%d]"
    sent = b"".join(asking % n for n in range(10, 13)) + WHOLE
    written = await peer.send(*[sent[at : at + size] for at in range(0, len(sent), size)])
    assert server.bodies == [b"[10]", b"[11]", b"[12]", b"[]"]
    assert written.count(b" 200 OK") == 4


async def test_an_old_client(server: Server) -> None:
    peer = Peer(server, room_of())
    written = await peer.send(b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n[]")
    assert b" 200 OK" in written
    assert peer.wire.closed


async def test_an_answer_that_is_not_read(server: Server, refusals: list[str]) -> None:
    peer = Peer(server, room_of(refusals=refusals))
    await peer.send(WHOLE)
    peer.wire.unsent = 100_000
    peer.connection.pause_writing()
    await peer.after(1)
    peer.wire.unsent = 90_000
    await peer.after(UNREAD_SECONDS_MAX)
    await peer.after(2 * UNREAD_SECONDS_MAX - 1)
    assert not peer.wire.aborted
    await peer.after(2 * UNREAD_SECONDS_MAX + 1)
    assert peer.wire.aborted
    assert refusals == ["unread"]


async def test_a_closed_connection_whose_answer_is_not_read(server: Server) -> None:
    peer = Peer(server, room_of())
    peer.wire.unsent = 1000
    await peer.send(b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n[]")
    assert peer.wire.closed
    await peer.after(1)
    await peer.after(UNREAD_SECONDS_MAX + 2)
    assert peer.wire.aborted


async def test_an_answer_before_the_body_is_the_last_one(server: Server) -> None:
    async def early(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    peer = Peer(early, room_of())
    assert b" 404 " in await peer.send(POST + b"Content-Length: 1000\r\n\r\n")
    assert peer.wire.closed


async def test_a_lost_connection_leaves_its_room(server: Server) -> None:
    room = room_of()
    server.go.clear()
    peers = [Peer(server, room) for _ in range(3)]
    await peers[0].send(WHOLE * 3)
    await peers[1].send(POST)
    for peer in peers:
        peer.wire.abort()
    await turns()
    assert len(room) == 0
    server.go.set()
    await turns()
    assert len(server.bodies) == 1, "what waited behind it was not begun"
