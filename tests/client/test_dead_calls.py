"""Dead calls through clients: an embedded engine's own, and one of a gateway in front of it; wrong uses are refused."""

from __future__ import annotations

import contextlib
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from itertools import product
from typing import Any

import msgspec
import pytest

from styx import App, Context, DeadCall, Operator, RequestRejected, Retry, TransactionAborted
from styx.client.base import Client
from styx.client.http import HttpClient
from styx.errors import BadArguments, BadKey
from styx.gateway.app import Gateway
from styx.model import dead_calls
from styx.model.dead_list import id_of, parts_of
from styx.testing import embedded_cluster
from styx.testing.fixture import EmbeddedCluster
from tests.gateway.asgi import exchange
from tests.gateway.running import running

pytestmark = pytest.mark.anyio

giver = Operator("giver", key_type=(str, int))
book = Operator("book", key_type=int, n_partitions=3)
ONCE = Retry(attempts=1)


@giver.register
async def give(ctx: Context, text: Any, times: int = 1) -> None:
    for _ in range(times):
        ctx.after_commit(book, write, 7, (text,), retry=ONCE)


@giver.register
async def give_named(ctx: Context) -> None:
    ctx.after(timedelta(hours=1), book, write, 7, ("named",), name="n", retry=ONCE)


@giver.register
async def withdraw(ctx: Context) -> bool:
    return await ctx.cancel("n")


@book.register
async def write(ctx: Context, text: Any) -> None:
    if await ctx.get(False) is False:
        raise ValueError(f"no place for {str(text)[:9]}")
    await ctx.put([*await ctx.get([]), text])


@book.register
async def open_book(ctx: Context) -> None:
    await ctx.put([])


@book.register
async def close(ctx: Context) -> None:
    await ctx.delete()


app = App("dead", [giver, book])


@contextlib.asynccontextmanager
async def two() -> AsyncIterator[tuple[EmbeddedCluster, list[Client]]]:
    """The engine's own client, and it with one through a gateway."""
    async with embedded_cluster(app) as cluster, running(cluster.engine) as server, HttpClient(server.url) as http:
        yield cluster, [cluster, http]


async def test_both_kinds_of_clients_list_the_same_without_knowing_the_keys() -> None:
    async with two() as (cluster, clients):
        for number in range(12):
            await cluster.call(giver, ("g", number), give, f"text {number}")
        await cluster.advance(timedelta(0))
        lists: list[list[DeadCall]] = []
        for client in clients:
            calls: list[DeadCall] = []
            after = None
            while True:
                page = await client.dead_calls(giver, after=after, first=5)
                assert len(page.calls) <= 5
                calls += page.calls
                if page.next is None:
                    break
                after = page.next
            lists.append(calls)
        assert lists[0] == lists[1]
        assert sorted(call.giver for call in lists[0]) == [("g", number) for number in range(12)]
        first = lists[0][0]
        assert (first.operator, first.function, first.key, first.attempts) == ("book", "write", 7, 1)
        assert (first.error_type, first.arguments) == ("ValueError", [f"text {first.giver[1]}"])
        assert first.given_at <= first.died_at
        assert first.died_at.tzinfo == UTC


async def test_a_replay_makes_the_call_and_a_drop_does_not() -> None:
    async with two() as (cluster, clients):
        for client in clients:
            await cluster.call(giver, ("g", 1), give, "a")
            await cluster.call(giver, ("g", 1), give, "b")
            await cluster.advance(timedelta(0))
            page = await client.dead_calls("giver", key=("g", 1))
            assert [call.arguments for call in page.calls] == [["a"], ["b"]]
            assert (await client.dead_calls("giver", key=("g", 2))).calls == []
            await cluster.call(book, 7, open_book)
            assert await client.replay_dead_call(giver, page.calls[0].id) is True
            assert await client.replay_dead_call(giver, page.calls[0].id) is False
            assert await client.drop_dead_call(giver, page.calls[1].id) is True
            assert await client.drop_dead_call(giver, page.calls[1].id) is False
            await cluster.advance(timedelta(0))
            assert cluster.entity(book, 7) == ["a"]
            assert (await client.dead_calls(giver)).calls == []
            await cluster.engine.flushed()
            await cluster.call(book, 7, "close")


async def test_a_replayed_call_has_all_its_attempts_and_dies_again() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(giver, ("g", 1), give, "a")
        await cluster.advance(timedelta(0))
        [dead] = (await cluster.dead_calls(giver)).calls
        await cluster.replay_dead_call(giver, dead.id)
        await cluster.advance(timedelta(0))
        [again] = (await cluster.dead_calls(giver)).calls
        assert again.id != dead.id
        assert (again.attempts, again.arguments) == (1, ["a"])
        assert again.given_at > dead.given_at


async def test_a_replay_takes_no_name_that_another_call_has_by_now() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(giver, ("g", 1), give_named)
        await cluster.advance(timedelta(hours=1))
        [dead] = (await cluster.dead_calls(giver)).calls
        await cluster.call(giver, ("g", 1), give_named)
        await cluster.replay_dead_call(giver, dead.id)
        assert await cluster.call(giver, ("g", 1), withdraw) is True
        await cluster.advance(timedelta(hours=2))
        assert len((await cluster.dead_calls(giver)).calls) == 1


async def test_large_arguments_are_not_shown_and_are_kept() -> None:
    async with two() as (cluster, clients):
        text = "x" * 100_000
        await cluster.call(giver, ("g", 1), give, text)
        await cluster.advance(timedelta(0))
        [dead] = (await cluster.dead_calls(giver)).calls
        for client in clients:
            assert (await client.dead_calls(giver)).calls == [dead]
        assert (dead.arguments, dead.arguments_bytes > 100_000) == (None, True)
        await cluster.call(book, 7, open_book)
        await cluster.replay_dead_call(giver, dead.id)
        await cluster.advance(timedelta(0))
        assert cluster.entity(book, 7) == [text]


async def test_pages_go_on_within_an_entity(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two() as (cluster, clients):
        await cluster.call(giver, ("g", 1), give, "a", 120)
        await cluster.advance(timedelta(0))
        for client in clients:
            for key in (None, ("g", 1)):
                first = await client.dead_calls(giver, key=key, first=70)
                rest = await client.dead_calls(giver, key=key, first=1000, after=first.next)
                assert (len(first.calls), len(rest.calls), rest.next) == (70, 50, None)
                assert len({call.id for call in first.calls + rest.calls}) == 120


async def test_the_oldest_go_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dead_calls, "DEAD_CALLS_MAX", 3)
    async with embedded_cluster(app, n_slots=1) as cluster:
        for number in range(5):
            await cluster.call(giver, ("g", number), give, number)
            await cluster.advance(timedelta(milliseconds=1))
        assert [call.arguments for call in (await cluster.dead_calls(giver)).calls] == [[2], [3], [4]]
        await cluster.call(giver, ("h", 0), give, 5, 3)
        await cluster.advance(timedelta(milliseconds=1))
        assert [call.arguments for call in (await cluster.dead_calls(giver)).calls] == [[5], [5], [5]]
        assert cluster.engine.reports.dead_calls.dropped == {"giver": 5}
        metrics = cluster.engine.metrics()
    assert 'styx_dead_calls_kept{operator="giver"} 3' in metrics
    assert 'styx_dead_calls_dropped_total{operator="giver"} 5' in metrics
    assert "operator giver has too many dead calls: a partition keeps 10000, and the oldest are lost" in caplog.text


async def test_dead_calls_outlive_a_crash(tmp_path: Any) -> None:
    async with embedded_cluster(app, tmp_path) as cluster:
        for number in range(6):
            await cluster.call(giver, ("g", number), give, number)
        await cluster.advance(timedelta(0))
        before = (await cluster.dead_calls(giver)).calls
        await cluster.crash_and_recover()
        assert (await cluster.dead_calls(giver)).calls == before
        assert await cluster.drop_dead_call(giver, before[0].id)
        await cluster.crash_and_recover()
        assert (await cluster.dead_calls(giver)).calls == before[1:]


# Wrong uses ------------------------------------------------------------------------------------------------

NO_ID: list[Any] = ["", "x", "ä", "kqNv", id_of("a", "b")[:-3], "../../x", 7, None, b"x", "k" * 10_000]


async def test_what_is_no_id_is_refused_before_it_is_sent() -> None:
    async with two() as (_, clients):
        for client, wrong in product(clients, NO_ID):
            with pytest.raises(BadArguments, match="is no id of a dead call"):
                await client.replay_dead_call(giver, wrong)
            with pytest.raises(BadArguments, match="is no id of a dead call"):
                await client.drop_dead_call(giver, wrong)


async def test_an_id_of_another_operator_is_refused_by_its_key() -> None:
    async with two() as (_, clients):
        for client in clients:
            for wrong in (id_of("text", "id"), id_of(["g", "x"], "id"), id_of(["g", 1, 2], "id")):
                with pytest.raises(RequestRejected, match="giver"):
                    await client.replay_dead_call(giver, wrong)
            assert await client.drop_dead_call(giver, id_of(["g", 1], "id")) is False


async def test_a_page_has_limits() -> None:
    wrong: list[Any] = [0, -1, 1001, True, "five", 2.5, None]
    async with two() as (_, clients):
        for client, first in product(clients, wrong):
            with pytest.raises((BadArguments, RequestRejected), match="dead calls"):
                await client.dead_calls(giver, first=first)


async def test_a_place_of_another_list_is_refused_and_not_compared_with_what_is_there() -> None:
    of_entity: list[list[Any]] = [[5], ["a", "b"]]
    of_giver: list[list[Any]] = [["g"], [5], [5, 5, "x"], [5, "g", 1, 7], [5, "g", 1, "x", "y"], ["5", "g", 1, "x"]]
    async with two() as (cluster, clients):
        await cluster.call(giver, ("g", 1), give, "text")
        await cluster.advance(timedelta(0))
        for client in clients:
            for partition, behind in product(range(4), of_giver):
                with pytest.raises((TransactionAborted, RequestRejected), match="no place in a list of dead calls"):
                    await client.dead_calls(giver, after=place(partition, behind))
            for behind in of_entity:
                with pytest.raises((TransactionAborted, RequestRejected), match="no place in a list of dead calls"):
                    await client.dead_calls(giver, key=("g", 1), after=place(0, behind))
            assert (await client.dead_calls(giver, after=place(99, [5, "g", 1, "x"]))).calls == []


def place(partition: int, behind: list[Any]) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode([partition, behind])).decode().rstrip("=")


async def test_what_is_no_place_is_refused() -> None:
    async with two() as (_, clients):
        for client, after in product(clients, ["", "x", "kQA", id_of("a", "b"), "ä"]):
            with pytest.raises((BadArguments, RequestRejected), match="no place in a list of dead calls"):
                await client.dead_calls(giver, after=after)


async def test_names_and_keys_that_are_none() -> None:
    async with two() as (cluster, clients):
        for client in clients:
            for name in ("gvier", "giver*", "giver/x", "~dead", ""):
                with pytest.raises(Exception, match=r"giver|dead calls"):
                    await client.dead_calls(name)
            with pytest.raises((BadKey, RequestRejected), match="giver"):
                await client.dead_calls(giver, key="text")
        for request in (("giver*", -1), ("giver*", "x"), ("book", 0)):
            for arguments in (("x", 5), (None, 0), (None, 51), (None,), ([], 5), ([None], 5)):
                assert (await cluster.request(*request, "<dead>", *arguments)).error is not None
        assert (await cluster.request("giver*", 0, "<replay dead>", "x")).error is not None
        assert (await cluster.request("giver*", 0, "give", "x")).error is not None
        assert (await cluster.request("gone*", 0, "<dead>", None, 5)).error is not None
        assert (await cluster.request(giver, ("g", 1), "<replay dead>", 7)).error is not None


async def test_no_function_reaches_them() -> None:
    other = Operator("other")

    @other.register
    async def reaches(ctx: Context, function: str) -> None:
        await ctx.call("other", function, ctx.key, ("x",))

    async with embedded_cluster(App("reaching", [other])) as cluster:
        for name in ("<dead>", "<replay dead>", "<drop dead>"):
            with pytest.raises(TransactionAborted, match="no function"):
                await cluster.call(other, "a", reaches, name)
            named = Operator("x")
            function = reaches_named(name)
            with pytest.raises(Exception, match="the engine's own"):
                named.register(function)


def reaches_named(name: str) -> Any:
    async def function(ctx: Context) -> None: ...

    function.__name__ = name
    return function


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/~dead/giver", 200),
        ("HEAD", "/v1/~dead/giver", 200),
        ("POST", "/v1/~dead/giver", 405),
        ("GET", "/v1/~dead/giver/x/replay", 405),
        ("POST", "/v1/~dead/giver/x/replay", 422),
        ("POST", "/v1/~dead/giver/x/dorp", 404),
        ("POST", "/v1/~dead/giver/x", 404),
        ("GET", "/v1/~dead/", 404),
        ("GET", "/v1/~dead/giver/", 404),
        ("GET", "/v1/~dead/nobody", 404),
        ("GET", "/v1/~dead/giver?first=x", 422),
        ("GET", "/v1/~dead/giver?first=0", 422),
        ("GET", "/v1/~dead/giver?frist=1", 422),
        ("GET", "/v1/~dead/giver?key=a", 422),
        ("GET", "/v1/~dead/giver?key=", 422),
        ("GET", "/v1/~dead/giver?after=zz", 422),
        ("GET", "/v1/~dead/giver?first=5&first=6", 422),
        ("GET", "/v1/~dead/gi%ver", 400),
    ],
)
async def test_paths_and_methods(method: str, path: str, status: int) -> None:
    async with embedded_cluster(app) as cluster:
        answer = await exchange(Gateway(cluster.engine), method, path)
        assert answer.status == status, answer.body
        if method == "GET" and status == 200:
            assert msgspec.json.decode(answer.body) == {"result": {"calls": [], "next": None}}


def test_an_id_comes_back() -> None:
    for giver_key, its_id in (("a", "b"), (7, "b"), (("a", 7), "ü")):
        assert parts_of(id_of(giver_key, its_id)) == (giver_key, its_id)
