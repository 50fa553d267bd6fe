"""A guard lets in, refuses and limits alike on the direct way and behind ASGI."""

from __future__ import annotations

from pathlib import Path

import pytest

from styx.gateway.auth import api_keys
from styx.gateway.auth.access import AccessOptions
from styx.gateway.auth.api_keys import new_key, utc_now
from styx.gateway.front import Front
from tests.gateway.ways import both, held, request
from tests.http.wire import Peer, turns

pytestmark = pytest.mark.anyio

RULES = b"""
[[allow]]
keys = ["shop"]
call = ["shelf.add"]
"""


@pytest.fixture
def key(tmp_path: Path) -> str:
    text, entry = new_key("shop", utc_now())
    api_keys.change_file(tmp_path / "keys.json", lambda keys: [*keys, entry])
    return text


@pytest.fixture
def front(tmp_path: Path, key: str) -> Front:
    """The key `shop` may call `shelf.add`, once at a time."""
    (tmp_path / "rules.toml").write_bytes(RULES)
    options = AccessOptions(api_keys=tmp_path / "keys.json", policy=tmp_path / "rules.toml", in_flight=1)
    return Front(access=options)


async def test_who_is_let_in(front: Front, key: str) -> None:
    direct, _ = await both(request(Authorization=f"Bearer {key}"), front=front)
    assert len(direct.taken) == 1
    assert direct.served().by_status == {200: 1}


@pytest.mark.parametrize("credential", ["", "Bearer styx_x", "Bearer", "Basic eDp5"])
async def test_who_is_not(front: Front, credential: str) -> None:
    direct, _ = await both(request(Authorization=credential), front=front)
    assert (direct.taken, direct.served().refused) == ([], {"unauthenticated": 1})


async def test_what_no_rule_allows(front: Front, key: str) -> None:
    sent = request("POST /v1/shelf/a/key", b"", Authorization=f"Bearer {key}")
    direct, _ = await both(sent, front=front)
    assert (direct.taken, direct.served().refused) == ([], {"forbidden": 1})


async def test_keys_are_each_identity_s_own(front: Front, key: str) -> None:
    direct, _ = await both(request(Authorization=f"Bearer {key}", Idempotency_Key="once"), front=front)
    idempotency_key = direct.engine.requests[0].idempotency_key
    assert idempotency_key.endswith(" once")
    assert len(idempotency_key) > len(" once")


async def test_requests_in_flight_are_limited_and_leave(front: Front, key: str) -> None:
    sent = request(Authorization=f"Bearer {key}")
    answers = []
    for way in await held(sent, front=front):
        second = Peer(way.peer.connection.app, way.peer.connection._room, way.peer.connection._direct)
        answers.append(await second.send(sent))
        assert b" 429 " in answers[-1]
        assert way.gateway.metrics._refused == {"rate_limited": 1}
        way.engine.release()
        await turns()
        assert b" 200 OK" in way.peer.wire.written
        third = Peer(way.peer.connection.app, way.peer.connection._room, way.peer.connection._direct)
        assert b" 200 OK" in await third.send(sent)
    assert answers[0] == answers[1]
