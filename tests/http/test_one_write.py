"""An answer that announces its length leaves in one write; a stream's head does not wait for its first part."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from tests.http.wire import Application, Peer, Wire, room_of

pytestmark = pytest.mark.anyio

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LENGTH = (b"content-length", b"4")


class Written(list[bytes]):
    """What each write of a connection had, in order, and `closed` at its end."""


def _peer(application: Application, monkeypatch: pytest.MonkeyPatch) -> tuple[Peer, Written]:
    written = Written()
    monkeypatch.setattr(Wire, "write", lambda _, data: written.append(bytes(data)))
    monkeypatch.setattr(Wire, "close", lambda _: written.append(b"closed"))
    return Peer(application, room_of()), written


def _answering(headers: list[tuple[bytes, bytes]], *parts: bytes, hold: asyncio.Event | None = None) -> Application:
    async def application(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if hold is not None:
            await hold.wait()
        for number, part in enumerate(parts, 1):
            await send({"type": "http.response.body", "body": part, "more_body": number < len(parts)})

    return application


@pytest.mark.parametrize("parts", [(b"body",), (b"bo", b"dy")], ids=["whole", "in parts"])
async def test_head_and_body_leave_together(parts: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    peer, written = _peer(_answering([LENGTH], *parts), monkeypatch)
    await peer.send(GET)
    await peer.send(GET)
    assert len(written) == 2 * len(parts), "one write for each part of the body"
    head, body = written[0].split(b"\r\n\r\n")
    assert head == b"HTTP/1.1 200 OK\r\ncontent-length: 4"
    assert (body, *written[1 : len(parts)]) == parts
    assert written[len(parts) :] == written[: len(parts)]


async def test_an_answer_without_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, written = _peer(_answering([(b"content-length", b"0")], b""), monkeypatch)
    await peer.send(GET)
    assert written == [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]


async def test_an_answer_to_a_head_request_is_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, written = _peer(_answering([LENGTH], b"body"), monkeypatch)
    await peer.send(GET.replace(b"GET", b"HEAD"))
    assert written == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"]
    await peer.send(GET)
    assert written[1:] == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody"]


async def test_a_stream_begins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = asyncio.Event()
    peer, written = _peer(_answering([], b"part", b"", hold=hold), monkeypatch)
    await peer.send(GET)
    assert written == [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
    hold.set()
    await peer.send()
    assert written[1:] == [b"4\r\npart\r\n", b"0\r\n\r\n"]


async def test_a_head_without_its_body_leaves_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, written = _peer(_answering([LENGTH]), monkeypatch)
    await peer.send(GET)
    assert written == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n", b"closed"]
