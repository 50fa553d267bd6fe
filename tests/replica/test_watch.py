"""`/v1/sql/watch`: a result whenever it has changed, once each; watchers that leave, fail, are too many, or outlive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest

from styx.query.schema import of_description
from styx.query.source import Place
from styx.replica.follower import Follower
from styx.replica.process import ReplicaProcess
from styx.replica.service import Places
from styx.schema.description import AppDescription, OperatorDescription
from styx.values.event_lines import Block, BlockReader
from tests.backup.snapshots import Cluster
from tests.replica.served import replica_of, so

ACCOUNT = OperatorDescription(key_type="str", n_partitions=None, partition_key=False, functions={})
TWO = Places(2, 4)
COUNT = "select count(*) n, max(key) last from account.state"
Test = Callable[[aiohttp.ClientSession, str, ReplicaProcess, Cluster], Awaitable[None]]


def run(test: Test, places: Places = TWO) -> None:
    cluster = Cluster()
    cluster.snapshot(1, {"a": b"\x01"})
    description = AppDescription(name="bank", operators={"account": ACCOUNT})
    follower = Follower(lambda: Place(cluster.store, lambda _: description), of_description, 2**30)

    async def within() -> None:
        async with replica_of(follower, places) as (url, process), aiohttp.ClientSession() as session:
            await so(lambda: follower.moment is not None)
            await test(session, f"{url}/v1/sql/watch", process, cluster)

    asyncio.run(within())


@asynccontextmanager
async def watching(session: aiohttp.ClientSession, url: str, sql: str) -> AsyncIterator[AsyncIterator[Block]]:
    """The blocks of a stream."""
    async with session.get(url, params={"sql": sql}) as response:
        assert response.status == 200, await response.text()
        assert response.headers["content-type"].startswith("text/event-stream")
        reader = BlockReader()

        async def blocks() -> AsyncIterator[Block]:
            async for data in response.content.iter_any():
                for each in reader.take(data):
                    yield each

        yield blocks()


async def following(blocks: AsyncIterator[Block]) -> Block:
    return await asyncio.wait_for(anext(blocks), 60)


def content(block: Block) -> Any:
    assert block.data is not None
    return msgspec.json.decode(block.data)


def test_a_result_comes_when_it_has_changed() -> None:
    async def test(session: aiohttp.ClientSession, url: str, process: ReplicaProcess, cluster: Cluster) -> None:
        async with watching(session, url, COUNT) as blocks:
            first = await following(blocks)
            assert first.id == "1"
            assert content(first) == {
                "epoch": 1,
                "columns": [{"name": "n", "type": "BIGINT"}, {"name": "last", "type": "VARCHAR"}],
                "rows": [{"n": 2, "last": "a"}],
            }
            answered = process.service.counts.answered
            cluster.snapshot(2, {"a": b"\x02"})  # another value, and the same result
            await so(lambda: process.service.counts.answered > answered)
            cluster.snapshot(3, {"b": b"\x02"})
            second = await following(blocks)
            assert (second.id, content(second)["rows"]) == ("3", [{"n": 4, "last": "b"}])
            assert process.service.counts.running == 0  # it holds no place while it waits

    run(test)


def test_a_watcher_that_leaves_is_forgotten() -> None:
    async def test(session: aiohttp.ClientSession, url: str, process: ReplicaProcess, cluster: Cluster) -> None:
        watch = process.application._watch
        async with watching(session, url, COUNT) as blocks:
            await following(blocks)
            assert watch.watchers == 1
        await so(lambda: watch.watchers == 0)

    run(test)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"sql": "selec"}, 400, "syntax error"),
        ({"sql": "drop table x"}, 400, "only a SELECT may run"),
        ({}, 400, "the URL has no query"),
        ({"sql": "select 1", "after": "1"}, 400, "got 'after'"),
        ({"sql": "select * from range(20)", "rows": "10"}, 422, "more than 10 rows"),
        ({"sql": "select repeat('x', 2000000)"}, 422, "watched has at most"),
    ],
)
def test_a_query_that_has_no_result_is_refused_at_once(query: dict[str, str], status: int, words: str) -> None:
    async def test(session: aiohttp.ClientSession, url: str, process: ReplicaProcess, cluster: Cluster) -> None:
        async with session.get(url, params=query) as response:
            assert response.status == status
            assert words in (await response.json())["error"]["message"]

    run(test)


def test_a_query_that_fails_later_ends_the_stream_with_the_reason() -> None:
    async def test(session: aiohttp.ClientSession, url: str, process: ReplicaProcess, cluster: Cluster) -> None:
        sql = "select case when count(*) > 2 then error('too ' || count(*)) end x from account.state"
        async with watching(session, url, sql) as blocks:
            await following(blocks)
            cluster.snapshot(2, {"b": b"\x02"})
            last = await following(blocks)
            assert last.name == "error"
            assert "too 4" in content(last)["error"]["message"]
            with pytest.raises(StopAsyncIteration):
                await following(blocks)

    run(test)


def test_too_many_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.replica.watch.WATCHERS_MAX", 1)

    async def test(session: aiohttp.ClientSession, url: str, process: ReplicaProcess, cluster: Cluster) -> None:
        async with watching(session, url, COUNT) as blocks:
            await following(blocks)
            async with session.get(url, params={"sql": COUNT}) as response:
                assert response.status == 429

    run(test)


def test_a_watcher_waits_for_a_place() -> None:
    async def test(session: aiohttp.ClientSession, url: str, process: ReplicaProcess, cluster: Cluster) -> None:
        async with watching(session, url, COUNT) as blocks:
            await following(blocks)
            endless = "with recursive r as (select 1 as n union all select n + 1 from r) select max(n) from r"
            other = session.post(url.removesuffix("/watch"), json={"sql": endless})
            holding = asyncio.ensure_future(other.__aenter__())
            await so(lambda: process.service.counts.running == 1)
            cluster.snapshot(2, {"b": b"\x02"})
            await so(lambda: process.service.counts.refused > 1)
            holding.cancel()
            assert (await following(blocks)).id == "2"

    run(test, Places(1, 0))


def test_the_end_of_the_server_is_told() -> None:
    async def test(session: aiohttp.ClientSession, url: str, process: ReplicaProcess, cluster: Cluster) -> None:
        async with watching(session, url, COUNT) as blocks:
            await following(blocks)
            process.application.draining = True
            last = await following(blocks)
            assert (last.name, content(last)["error"]["code"]) == ("error", "unavailable")

    run(test)
