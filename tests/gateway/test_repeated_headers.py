"""A header that can have one meaning only, sent twice: refused. Whoever reads the other one sees another request."""

import pytest

from styx.gateway.app import Gateway
from tests.gateway.fake_engine import FakeEngine
from tests.http.wire import Peer, room_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "header",
    [
        "Idempotency-Key: a",
        "Styx-Timeout: 1",
        "Styx-Key-Type: str",
        "Content-Type: application/json",
        "Styx-Freshness: strict",
        "Styx-At: 1",
        "Styx-Epoch: 1",
        "Styx-Max-Staleness: 1",
    ],
)
async def test_refused(gateway: Gateway, engine: FakeEngine, header: str) -> None:
    peer = Peer(gateway, room_of())
    lines = ["POST /v1/shelf/a/key HTTP/1.1", "Host: x", header, header.lower(), "Content-Length: 0"]
    written = await peer.send("\r\n".join([*lines, "\r\n"]).encode())
    assert written.startswith(b"HTTP/1.1 400 ")
    assert header.partition(":")[0].encode() + b" stands there twice" in written
    assert engine.requests == []


async def test_others_may_be_repeated(gateway: Gateway) -> None:
    peer = Peer(gateway, room_of())
    lines = ["POST /v1/shelf/a/key HTTP/1.1", "Host: x", "Accept: a/b", "Accept: c/d", "Content-Length: 0"]
    assert (await peer.send("\r\n".join([*lines, "\r\n"]).encode())).startswith(b"HTTP/1.1 200 ")
