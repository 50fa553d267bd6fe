"""The guard before a gateway, and who fails to prove who he is, again and again."""

import json
import logging
from pathlib import Path

import pytest

from styx.gateway.auth.limits import FAILURES_AT_ONCE_MAX
from tests.gateway.asgi import Answer, exchange
from tests.gateway.auth.test_guard import OWN, Door

pytestmark = pytest.mark.anyio


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


async def test_who_fails_too_often_has_to_wait(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    """An address of its own each; whoever proves who he is, or shows nothing, is not concerned."""

    async def attempt(client: str, credential: str | None, **headers: str) -> Answer:
        sent = OWN | {} if credential is None else OWN | {"authorization": f"Bearer {credential}"}
        return await exchange(door.entrance.application, "GET", "/metrics", [b""], sent | headers, client)

    with caplog.at_level(logging.WARNING, "styx.audit"):
        for number in range(FAILURES_AT_ONCE_MAX):
            assert (await attempt("10.0.0.1", f"styx_guess_{number}")).status == 401
            assert (await attempt("10.0.0.1", None)).status == 401
        refused = await attempt("10.0.0.1", "styx_guess_21")
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert 1 <= int(refused.headers["retry-after"]) <= 5
    assert refused.headers["connection"] == "close"
    line = json.loads(caplog.records[-1].getMessage())
    assert (line["status"], line["code"], line["client"]) == (429, "rate_limited", "10.0.0.1")
    assert "guess" not in caplog.text
    assert (await attempt("10.0.0.1", None)).status == 401
    assert (await attempt("10.0.0.1", door.shop)).status == 200, "who shares an address is not locked out"
    assert (await attempt("10.0.0.2", "styx_guess_1")).status == 401
    for number in range(2):
        forged = await attempt("10.0.0.1", "styx_guess_1", **{"x-forwarded-for": f"10.0.1.{number}"})
        assert forged.status == 429, "whoever is no trusted proxy cannot choose an address"
    assert 'code="rate_limited"' in door.gateway.metrics.text()


async def test_behind_a_trusted_proxy_each_client_has_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    door = Door(tmp_path, trusted_proxies=("10.0.0.1",))

    async def attempt(forwarded: str) -> int:
        sent = OWN | {"authorization": "Bearer styx_x", "x-forwarded-for": forwarded}
        answer = await exchange(door.entrance.application, "GET", "/metrics", [b""], sent, "10.0.0.1")
        return answer.status

    with caplog.at_level(logging.WARNING, "styx.audit"):
        statuses = [await attempt(f"6.6.6.{number}, 1.1.1.1") for number in range(FAILURES_AT_ONCE_MAX + 1)]
    assert statuses == [401] * FAILURES_AT_ONCE_MAX + [429]
    assert json.loads(caplog.records[-1].getMessage())["client"] == "1.1.1.1"
    assert await attempt("2.2.2.2") == 401
