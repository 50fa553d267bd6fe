"""A start whose `migrate=` never ends: it is named and refused, and the code from before goes on."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import App, Context, Limits, Operator
from styx.client.embedded import EmbeddedClient
from styx.errors import ConfigurationError

pytestmark = pytest.mark.anyio


def endless(old: Any) -> int:
    while True:
        pass


def client(data_dir: Path, seconds_max: float = 10.0, **declared: Any) -> EmbeddedClient:
    account = Operator("account", **declared)

    @account.register
    async def put(ctx: Context, value: str) -> None:
        await ctx.put(value)

    return styx.embedded(App("bank", [account]), data_dir, limits=Limits(function_seconds_max=seconds_max))


@pytest.mark.parametrize("crash", [False, True])
async def test_it_is_named_and_refused(tmp_path: Path, crash: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "styx.watchdog")
    async with client(tmp_path) as before:
        await before.call("account", "ada", "put", "much")
        if crash:
            before.crash()
    with pytest.raises(ConfigurationError, match=r"migrate= on 'ada' ran for 1\.\d s at test_watched_check.py:\d+ in"):
        async with client(tmp_path, 1.5, state_type=int, migrate=endless):
            pass
    assert "account.migrate= on 'ada' has run for 1." in caplog.text
    async with client(tmp_path) as again:
        assert again.entity("account", "ada") == "much"
