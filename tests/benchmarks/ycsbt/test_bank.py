"""The app: a transfer happens as a whole or not at all, in both of its forms and with any number of partitions."""

from __future__ import annotations

import asyncio

import pytest

import styx
from benchmarks.ycsbt import bank
from benchmarks.ycsbt.bank import Account
from styx import App, ConfigurationError
from styx.cli.app_target import load_app


async def _try(app: App, function: str) -> None:
    async with styx.embedded(app) as client:
        await client.load("account", ((key, Account(100)) for key in range(4)))
        assert await client.call("account", 0, function, 1, 30) == 70
        assert await client.call("account", 1, "read") == 130
        assert await client.call("account", 2, "read_many", [0, 1]) == [100, 70, 130]
        for arguments, aborted_by in (((1, 71), "InsufficientFunds"), ((9, 1), "NoSuchAccount")):
            with pytest.raises(styx.TransactionAborted) as aborted:
                await client.call("account", 0, function, *arguments)
            assert aborted.value.type == aborted_by
        assert await client.call("account", 0, "read_many", [1, 2, 3]) == [70, 130, 100, 100]
        assert await client.call("account", 0, function, 1, 70) == 0


@pytest.mark.parametrize("function", ["transfer", "transfer_and_wait"])
@pytest.mark.parametrize("app", [bank.app, bank.partitioned(3)], ids=["one a slot", "3 partitions"])
def test_a_transfer_happens_as_a_whole_or_not_at_all(app: App, function: str) -> None:
    asyncio.run(_try(app, function))


def test_an_apps_target_says_how_many_partitions_it_has() -> None:
    assert load_app("benchmarks.ycsbt.bank:app") is bank.app
    app = load_app("benchmarks.ycsbt.bank:partitions_7")
    assert app.operators["account"].n_partitions == 7
    assert app.name == bank.app.name
    with pytest.raises(AttributeError):
        _ = bank.partitions_many
    with pytest.raises(ConfigurationError, match="n_partitions"):
        _ = bank.partitions_0
