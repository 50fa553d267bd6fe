"""`entity` and `read`: one entity's state from every client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import styx
from styx import RequestRejected
from styx.client.http import HttpClient
from styx.testing import embedded_cluster
from tests.embedded.ledger_app import app
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


async def test_through_a_gateway() -> None:
    async with styx.embedded(app) as embedded, running(embedded.engine) as server:
        async with HttpClient(server.url) as client:
            assert await client.entity("ledger", "a/b") is None
            await client.call("ledger", "a/b", "add")
            assert await client.entity("ledger", "a/b") == 1
            reply = await client.read("ledger", "a/b", idempotency_key="r")
            assert (reply.result, reply.error) == (1, None)
            assert reply.tid > 0
            absent = await client.read("ledger", "nobody")
            assert absent.error is not None
            assert absent.error.code == "unknown_entity"
            assert absent.tid > reply.tid
            with pytest.raises(RequestRejected, match="unknown_operator"):
                await client.entity("ledgre", "a")
            with pytest.raises(RequestRejected, match="bad_arguments"):
                await client.entity("ledger", 5)

        def use() -> None:
            with styx.connect_sync(server.url) as client:
                assert client.entity("ledger", "a/b") == 1
                assert client.entity("ledger", "nobody") is None
                assert client.read("ledger", "a/b").result == 1

        await asyncio.to_thread(use)


async def test_of_an_embedded_engine() -> None:
    async with styx.embedded(app) as client:
        assert client.entity("ledger", "a") is None
        absent = await client.read("ledger", "a")
        assert absent.error is not None
        assert absent.error.code == "unknown_entity"
        await client.call("ledger", "a", "add")
        assert client.entity("ledger", "a") == 1
        reply = await client.read("ledger", "a")
        assert (reply.result, reply.phase) == (1, 0)


async def test_the_history_of_a_test_cluster_has_its_reads(tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path) as cluster:
        for n in range(1, 4):
            absent = await cluster.read("ledger", "nobody")
            assert absent.error is not None
            await cluster.call("ledger", "a", "add")
            assert (await cluster.read("ledger", "a", idempotency_key=f"r{n}")).result == n
            await cluster.crash_and_recover()


def test_of_a_blocking_embedded_engine() -> None:
    with styx.embedded_sync(app) as client:
        assert client.entity("ledger", "a") is None
        client.call("ledger", "a", "add")
        assert client.entity("ledger", "a") == client.read("ledger", "a").result == 1
