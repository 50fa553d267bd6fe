"""What a client proves itself with: which can be given, and that no error shows one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import ConfigurationError, RequestRejected
from styx.client.credential import Credential
from styx.gateway.auth import api_keys
from styx.gateway.auth.access import AccessOptions
from styx.gateway.auth.api_keys import new_key, utc_now
from styx.gateway.front import Front
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[str, str]]:
    """A gateway's URL, and the key that it asks for."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    text, entry = new_key("shop", utc_now())
    api_keys.change_file(path, lambda _: [entry])
    async with running(FakeEngine(), front=Front(access=AccessOptions(api_keys=path))) as server:
        yield server.url, text


async def test_a_key(guarded: tuple[str, str]) -> None:
    url, key = guarded
    calls = 0

    def moment() -> str:
        nonlocal calls
        calls += 1
        return key

    given: list[dict[str, Any]] = [{"api_key": key}, {"api_key": f" {key}\n"}, {"token": key}, {"token": moment}]
    for options in given:
        async with styx.connect(url, **options) as client:
            assert await client.call("shelf", "a", "add", 2, 3) == 5
            assert await client.call("shelf", "a", "add", 2, 3) == 5
    assert calls == 2


async def test_without_a_key_nothing_is_run(guarded: tuple[str, str]) -> None:
    url, _ = guarded
    for options in ({}, {"api_key": "styx_wrong"}):
        async with styx.connect(url, **options) as client:
            with pytest.raises(RequestRejected) as caught:
                await client.call("shelf", "a", "add", 2, 3)
            assert caught.value.code == "unauthenticated"
            assert "styx_wrong" not in str(caught.value)
            with pytest.raises(styx.LoadFailed) as failed:
                await client.load("shelf", [("a", 1)])
            assert failed.value.code == "unauthenticated"


async def test_the_blocking_client(guarded: tuple[str, str]) -> None:
    url, key = guarded

    def call() -> object:
        with styx.connect_sync(url, api_key=key) as client:
            return client.call("shelf", "a", "add", 2, 3)

    assert await asyncio.to_thread(call) == 5


@pytest.mark.parametrize("text", ["", " ", "a b", "a\nb", "é", "a\r\nX-Other: b", "\x00"])
def test_what_is_none(text: str) -> None:
    for options in ({"api_key": text}, {"token": text}):
        with pytest.raises(ConfigurationError, match="neither an API key nor a token") as caught:
            Credential(**options)
        assert len(text.strip()) < 3 or text not in str(caught.value)


def test_what_does_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="either api_key or token"):
        styx.connect("http://127.0.0.1:1", api_key="a", token="b")
    with pytest.raises(ConfigurationError, match="are for gateways"):
        styx.connect("kafka://127.0.0.1:1", "bank", api_key="a")
    with pytest.raises(ConfigurationError, match="holds no PEM certificate"):
        styx.connect("https://127.0.0.1:1", ca_file=tmp_path / "none")
    assert "secret" not in repr(Credential("secret"))
