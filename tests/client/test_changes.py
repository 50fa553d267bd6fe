"""The change feed as clients read it: embedded, by HTTP, synchronous; types of values, going on, refusals."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from datetime import date
from typing import Any

import msgspec
import pytest
from anyio.from_thread import start_blocking_portal

import styx
from styx import App, Context, Operator, SnapshotTooOld
from styx.client.base import Client
from styx.client.changes import Change, ChangedEpoch, ChangeReader, Steps
from styx.client.http import HttpClient
from styx.client.kafka.client import KafkaClient
from styx.errors import BadArguments, ConfigurationError, NotSent, RequestRejected, UnknownOperator
from styx.testing import EmbeddedCluster, embedded_cluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


class Stock(msgspec.Struct):
    left: int


class Move(msgspec.Struct):
    day: int
    hour: int
    by: int


class Visit(msgspec.Struct):
    day: date
    by: str


class Stay(msgspec.Struct):
    day: date
    room: int


shelf = Operator("shelf", key_type=(str, int), state_type=Stock)
moves = shelf.table("moves", Move, key=("day", "hour"))
by_day: Any = moves.view("by_day", group_by="day", sum="by")
days = Operator("days")
visits = days.table("visits", Visit, key="day")
stays = days.table("stays", Stay, key=("day", "room"))
loose = Operator("loose")


@shelf.register
async def move(ctx: Context, day: int, hour: int, by: int) -> None:
    left = (await ctx.get(Stock(0))).left + by
    ctx.rows(moves).put(Move(day, hour, by))
    ctx.put(Stock(left)) if left else ctx.delete()


@loose.register
async def put(ctx: Context, value: Any) -> None:
    ctx.put(value)


@days.register
async def visit(ctx: Context, there: bool) -> None:
    if there:
        ctx.rows(visits).put(Visit(DAY, "x"))
        ctx.rows(stays).put(Stay(DAY, 3))
    else:
        await ctx.rows(visits).delete_where()
        await ctx.rows(stays).delete_where()


app = App("store", [shelf, days, loose])
DAY = date(2026, 5, 4)
KEY = ("north", 7)


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with asyncio.timeout(PATIENCE_SECONDS), embedded_cluster(app) as cluster:
        yield cluster


@pytest.fixture
def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@pytest.fixture(params=["embedded", "http"])
async def client(request: pytest.FixtureRequest, cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    if request.param == "embedded":
        yield cluster
        return
    async with running(cluster.engine) as server, styx.connect(server.url) as client:
        yield client


async def test_values_rows_and_rows_of_views_have_their_types(cluster: EmbeddedCluster, client: Client) -> None:
    async with client.changes(shelf) as reader:
        await reader.begin()
        reply = await cluster.request(shelf, KEY, "move", 3, 12, 5)
        found = await anext(reader)
        assert found.epoch == reply.epoch == reader.epoch
        by_table = {change.table: change for change in found.changes}
        assert by_table[None] == Change(KEY, Stock(5))
        assert by_table["moves"] == Change(KEY, Move(3, 12, 5), table="moves", row_key=(3, 12))
        view = by_table["by_day"]
        assert (view.key, view.row_key) == (KEY, 3)
        assert 5 in msgspec.structs.astuple(view.value)
        await cluster.call(shelf, KEY, "move", 3, 12, -5)
        found = await anext(reader)
        assert Change(KEY, None, deleted=True) in found.changes


async def test_a_primary_key_has_the_values_of_its_columns(cluster: EmbeddedCluster, client: Client) -> None:
    """Also of a row that is gone, of which nothing else tells them."""
    async with client.changes(days) as reader:
        await reader.begin()
        for there in (True, False):
            await cluster.call(days, "a", "visit", there)
            found = {change.table: change for change in (await anext(reader)).changes}
            assert (found["visits"].row_key, found["stays"].row_key) == (DAY, (DAY, 3))
            assert found["visits"].deleted is not there


async def test_by_name_an_embedded_client_decodes_and_one_by_http_gives_plain_data(
    cluster: EmbeddedCluster, client: Client
) -> None:
    async with client.changes("shelf", "moves") as reader:
        await reader.begin()
        await cluster.call(shelf, KEY, "move", 1, 2, 3)
        [change] = (await anext(reader)).changes
        plain = {"day": 1, "hour": 2, "by": 3}
        assert change.value == (plain if isinstance(client, HttpClient) else Move(**plain))


async def test_a_stored_none_is_not_deleted(cluster: EmbeddedCluster, client: Client) -> None:
    async with client.changes(loose) as reader:
        await reader.begin()
        await cluster.call(loose, "a", "put", 1)
        await cluster.call(loose, "a", "put", None)
        assert [(await anext(reader)).changes for _ in range(2)] == [[Change("a", 1)], [Change("a", None)]]


async def test_a_reader_goes_on_behind_the_last_epoch_that_it_has(cluster: EmbeddedCluster, client: Client) -> None:
    async with client.changes(loose) as reader:
        await reader.begin()
        for number in range(5):
            await cluster.call(loose, "a", "put", number)
        seen = [(await anext(reader)).changes[0].value for _ in range(2)]
        assert reader.epoch is not None
        place = reader.epoch + 1
    async with client.changes(loose, from_epoch=place) as reader:
        seen += [(await anext(reader)).changes[0].value for _ in range(3)]
    assert seen == [0, 1, 2, 3, 4]


async def test_the_state_and_the_changes_behind_its_epoch_are_the_state(
    cluster: EmbeddedCluster, client: Client
) -> None:
    """Begin to follow, read a state, and lay over it what is of later epochs."""
    keys = [f"k{number}" for number in range(5)]
    await asyncio.gather(*[cluster.call(loose, key, "put", -1) for key in keys])
    async with client.changes(loose) as reader:
        began = await reader.begin()
        await asyncio.gather(*[cluster.call(loose, key, "put", 1) for key in keys])
        reply = await client.read(loose, keys[0], freshness="strict")
        assert reply.epoch >= began
        state = {key: (await client.read(loose, key, at=reply.epoch)).unwrap() for key in keys}
        await asyncio.gather(*[cluster.call(loose, key, "put", number) for number, key in enumerate(keys)])
        wanted = {key: number for number, key in enumerate(keys)}
        while state != wanted:
            found = await anext(reader)
            if found.epoch > reply.epoch:
                state |= {change.key: change.value for change in found.changes}


async def test_what_is_not_kept_any_more_is_told(cluster: EmbeddedCluster, client: Client) -> None:
    await cluster.call(loose, "a", "put", 1)
    async with client.changes(loose, from_epoch=0) as reader:
        for _ in range(2):
            with pytest.raises(SnapshotTooOld, match="kept from epoch"):
                await anext(reader)


async def test_a_wait_that_is_given_up_ends_nothing_and_loses_nothing(cluster: EmbeddedCluster, client: Client) -> None:
    async with client.changes(loose) as reader:
        await reader.begin()
        for turn in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(reader), 0.05)
            await cluster.call(loose, "a", "put", 2 * turn)
            await cluster.call(loose, "a", "put", 2 * turn + 1)
            seen = [(await anext(reader)).changes for _ in range(2)]
            assert seen == [[Change("a", 2 * turn)], [Change("a", 2 * turn + 1)]]


async def test_what_cannot_be_read_is_not_the_end() -> None:
    asked: list[int] = []

    async def steps(after: int) -> Steps:
        asked.append(after)
        yield (6, []) if after == 5 else (6, [ChangedEpoch(6, [])])
        raise ValueError("it does not fit")

    reader = ChangeReader(steps, 5)
    assert await reader.begin() == 6
    for _ in range(2):
        with pytest.raises(ValueError, match="does not fit"):
            await anext(reader)
    assert asked == [5, 6]


async def test_the_end_of_the_engine_is_told(cluster: EmbeddedCluster) -> None:
    reader = cluster.changes(loose)
    await reader.begin()
    cluster.engine.crash()
    with pytest.raises(NotSent, match="crashed"):
        await anext(reader)


async def test_a_gateway_that_comes_back_is_read_on_from(cluster: EmbeddedCluster, free_port: int) -> None:
    seen: list[int] = []
    async with styx.connect(f"http://127.0.0.1:{free_port}") as client:
        reader = client.changes(loose)
        for turn in range(3):
            async with running(cluster.engine, port=free_port):
                if not turn:
                    await reader.begin()
                await cluster.call(loose, "a", "put", 2 * turn)
                seen.append((await anext(reader)).changes[0].value)
                # Nobody waits for this one while the gateway ends.
            await cluster.call(loose, "a", "put", 2 * turn + 1)
            if turn < 2:
                async with running(cluster.engine, port=free_port):
                    seen.append((await anext(reader)).changes[0].value)
        await reader.aclose()
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (lambda client: client.changes(loose, from_epoch=-1), "from_epoch= takes the first epoch"),
        (lambda client: client.changes(loose, from_epoch=True), "from_epoch= takes the first epoch"),
        (lambda client: client.changes(7), "the operator is an Operator or its name"),
        (lambda client: client.changes(loose, moves), "is not one of operator 'loose'"),
        (lambda client: client.changes(shelf, 7), "table= is a Table or its name"),
    ],
    ids=range(5),
)
async def test_what_cannot_be_asked_for(client: Client, given: Callable[[Any], Any], error: str) -> None:
    with pytest.raises(BadArguments, match=error):
        given(client)


async def test_what_the_app_does_not_have(client: Client) -> None:
    for given in (("nix",), (shelf, "nix")):
        with pytest.raises((RequestRejected, BadArguments, UnknownOperator)) as caught:
            await anext(client.changes(*given))
        assert "nix" in str(caught.value)


def test_a_client_of_kafka_follows_nothing() -> None:
    with pytest.raises(ConfigurationError, match="connect to a gateway by HTTP"):
        KafkaClient.changes(object.__new__(KafkaClient), "loose")


def test_a_synchronous_client() -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(embedded_cluster(app)) as cluster,
        portal.wrap_async_context_manager(running(cluster.engine)) as server,
        styx.connect_sync(server.url) as client,
        client.changes(loose) as reader,
    ):
        began = reader.begin()
        client.call(loose, "a", "put", 5)
        for found in reader:
            assert isinstance(found, ChangedEpoch)
            assert found.epoch > began
            assert found.changes == [Change("a", 5)]
            assert reader.epoch == found.epoch
            break
