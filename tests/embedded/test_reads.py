"""Reads outside the log of an embedded engine, as its clients ask for them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

import msgspec
import pytest

import styx
from styx import App, Context, Index, Operator, PartitionContext, RequestRejected, SnapshotTooOld, TransactionAborted
from styx.errors import BadArguments, NotSent
from styx.model.limits import Limits
from styx.protocol.reads import READ_PHASE
from styx.testing import embedded_cluster
from styx.worker.events import Step

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    product: int
    price: int


price = Operator("price", key_type=str)
discount = Operator("discount", key_type=str)
cart = Operator("cart", key_type=str)
ALL = Index("all", order="price", scope="partition")
items = cart.table("items", Item, key="product", indexes=[Index("by_price", order="price"), ALL])


@price.register
async def change(ctx: Context, number: int) -> None:
    """Both change together, in two operators, so that their sum stays 0."""
    await ctx.put(number)
    ctx.call_async(discount, put, ctx.key, (-number,))


@discount.register
async def put(ctx: Context, number: int) -> None:
    await ctx.put(number)


@price.register(read_only=True)
@discount.register(read_only=True)
async def seen(ctx: Context) -> int:
    return int(await ctx.get(0))


@price.register(read_only=True)
async def both(ctx: Context, times: int = 1) -> list[int]:
    numbers = [int(await ctx.get(0))]
    for _ in range(times):
        numbers.append(await ctx.call(discount, seen, ctx.key))
    return numbers


@price.register(read_only=True)
async def told(ctx: Context) -> str:
    ctx.log("somebody looks", at=ctx.key)
    assert ctx.random().random() >= 0
    assert ctx.now().year >= 2026
    return ctx.unique_id()


@price.register(read_only=True)
async def fails(ctx: Context) -> None:
    raise ValueError("as it should")


@price.register(read_only=True)
async def fails_later(ctx: Context) -> str:
    ctx.call_async(price, fails, "elsewhere")
    return "never given"


@price.register(read_only=True)
async def calls_a_writer(ctx: Context) -> None:
    await ctx.call(price, change, ctx.key, (1,))


@price.register(read_only=True)
async def endless(ctx: Context) -> None:
    while True:
        pass


@price.register(read_only=True)
async def does_not_go(ctx: Context) -> None:
    try:
        for _ in range(9_000):
            await ctx.call(discount, seen, ctx.key)
    finally:
        while True:
            pass


@cart.register
async def add(ctx: Context, item: Item) -> None:
    await ctx.rows(items).insert(item)


@cart.register(read_only=True)
async def dear(ctx: Context, least: int) -> list[Item]:
    return await ctx.rows(items).select(price=styx.at_least(least))


@cart.register_partition(read_only=True)
async def counted(ctx: PartitionContext) -> int:
    return len(await ctx.rows(items).select(price=styx.at_least(0)))


@price.register(read_only=True)
async def all_carts(ctx: Context) -> int:
    return sum(await ctx.call_all(cart, counted))


app = App("shop", operators=[price, discount, cart])


class OpenEpoch(NamedTuple):
    """A worker that executes an epoch."""

    epoch: int
    reached: Step = Step.EXECUTING
    recorded_until: int = -1
    limits: Limits = Limits()


async def test_a_read_is_of_one_state_whatever_runs_meanwhile() -> None:
    async with embedded_cluster(app) as cluster:
        writes = [asyncio.ensure_future(cluster.call(price, "a", change, number)) for number in range(1_000)]
        torn, epochs = 0, list[int]()
        while not all(write.done() for write in writes):
            reply = await cluster.read_request(price, "a", both)
            torn += sum(reply.result) != 0
            epochs.append(reply.epoch)
            await asyncio.sleep(0)
        assert torn == 0
        assert len(set(epochs)) > 3
        assert epochs == sorted(epochs)


async def test_what_a_read_gives_is_typed_and_named() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(cart, "c", add, Item(1, 5))
        await cluster.call(cart, "c", add, Item(2, 50))
        await cluster.call(cart, "d", add, Item(1, 7))
        assert await cluster.read(cart, "c", dear, 10) == [Item(2, 50)]
        assert await cluster.read("cart", "c", "dear", 6) == [{"product": 2, "price": 50}]
        assert await cluster.read(cart, "c", dear, least=5, freshness="strict") == [Item(1, 5), Item(2, 50)]
        assert await cluster.read(price, "any", all_carts) == 3
        reply = await cluster.read_request(price, "none", seen)
        assert (reply.result, reply.epoch, reply.phase, reply.tid) == (0, cluster.epoch, READ_PHASE, 0)


async def test_an_entity_is_read_as_well() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(discount, "a", put, 3)
        before = cluster.epoch
        await cluster.call(discount, "a", put, 4)
        assert (await cluster.read(discount, "a", freshness="latest")).result == 4
        too_old = await cluster.read(discount, "a", at=before)  # keeping begins with the first read
        assert too_old.error is not None
        assert too_old.error.code == "snapshot_too_old"
        await cluster.call(discount, "a", put, 5)
        assert (await cluster.read(discount, "a", at=cluster.epoch - 1)).result == 4
        none = await cluster.read(discount, "b", freshness="latest")
        assert none.error is not None
        assert none.error.code == "unknown_entity"
        through_the_log = await cluster.read(discount, "a")
        assert through_the_log.tid > 0


async def test_the_programming_model_holds(caplog: pytest.LogCaptureFixture) -> None:
    async with embedded_cluster(app, limits=Limits(invocations_max=10)) as cluster:
        with caplog.at_level(logging.INFO, "styx.functions"):
            ids = {await cluster.read(price, "a", told) for _ in range(50)}
        assert len(ids) == 50
        assert caplog.text.count("somebody looks") == 50
        aborts = ((fails, "ValueError"), (fails_later, "ValueError"), (calls_a_writer, "ReadOnlyViolation"))
        for function, kind in aborts:
            with pytest.raises(TransactionAborted) as aborted:
                await cluster.read(price, "a", function)
            assert aborted.value.type == kind
        assert len(await cluster.read(price, "a", both, 9)) == 10
        with pytest.raises(TransactionAborted, match="CallLimitExceeded"):
            await cluster.read(price, "a", both, 10)
        assert await cluster.call(price, "a", seen) == 0


async def test_a_function_that_does_not_end_is_ended() -> None:
    async with embedded_cluster(app, limits=Limits(function_seconds_max=0.1)) as cluster:
        with pytest.raises(TransactionAborted, match="FunctionTooLong"):
            await cluster.read(price, "a", endless)
        await cluster.call(price, "a", change, 1)
        assert await cluster.read(price, "a", both) == [1, -1]


async def test_one_that_nobody_waits_for_is_ended_as_well() -> None:
    async with embedded_cluster(app, limits=Limits(function_seconds_max=0.1, slice_invocations=1)) as cluster:
        reading = asyncio.ensure_future(cluster.read(price, "a", does_not_go))
        await asyncio.sleep(0.005)
        assert cluster.engine.reads.under_way == 1
        reading.cancel()
        assert await cluster.read(price, "a", seen) == 0
        assert cluster.engine.reads.under_way == 0


async def test_a_state_that_an_epoch_has_been_replacing_for_long() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.call(price, "a", change, 1)
        reads = cluster.engine.reads
        worker = reads._worker
        epoch = worker.epoch + 1
        reads._worker = OpenEpoch(epoch)  # type: ignore[assignment]
        reads._begun, reads._begun_s = epoch, asyncio.get_running_loop().time() - 10
        for freshness in ("latest", "session"):
            with pytest.raises(RequestRejected, match="too_stale"):
                await cluster.read(price, "a", seen, freshness=freshness, max_staleness_s=5)
            assert await cluster.read(price, "a", seen, freshness=freshness, max_staleness_s=20) == 1
        assert await cluster.read(price, "a", seen, freshness="strict", max_staleness_s=5) == 1
        reads._worker = worker


async def test_how_new_a_read_is() -> None:
    async with embedded_cluster(app) as cluster:
        assert cluster.epoch == -1
        for number in range(4):
            await cluster.call(price, "a", change, number)
        assert await cluster.read(price, "a", seen, freshness="session") == 3
        token = cluster.epoch
        await cluster.call(price, "a", change, 4)
        assert await cluster.read(price, "a", seen, at=token) == 3
        later = asyncio.ensure_future(cluster.read(price, "a", seen, at=token + 2))
        await asyncio.sleep(0.02)
        assert not later.done()
        await cluster.call(price, "a", change, 5)
        assert await later == 5
        with pytest.raises(TimeoutError, match="nothing was changed"):
            await cluster.read(price, "a", seen, at=token + 100, timeout=0.05)
        with pytest.raises(BadArguments, match="at=-1 is no epoch"):
            await cluster.read(price, "a", seen, at=-1)
        assert cluster.engine.reads.under_way == 0
        cluster.saw(token + 100)
        with pytest.raises(RequestRejected, match=r"unknown_epoch.*Begin a new session") as refused:
            await cluster.read(price, "a", seen, freshness="session")
        assert refused.value.code == "unknown_epoch"
        assert await cluster.read(price, "a", seen, max_staleness_s=1) == 5


async def test_what_is_not_kept_is_said() -> None:
    async with embedded_cluster(app, limits=Limits(versions_max=2)) as cluster:
        await cluster.read(price, "a", seen)
        for number in range(5):
            await cluster.call(price, "a", change, number)
        with pytest.raises(SnapshotTooOld, match="Read at a later epoch") as refused:
            await cluster.read(price, "a", seen, at=0)
        assert refused.value.code == "snapshot_too_old"
        assert "styx_reads_too_old_total 1" in cluster.engine.metrics()
        assert 'styx_reads_total{freshness="at"} 1' in cluster.engine.metrics()
        assert "styx_version_epochs 2" in cluster.engine.metrics()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"freshness": "newest"}, "'latest', 'session', 'strict'"),
        ({"freshness": "latest", "at": 1}, "give `at` alone"),
        ({"at": 1, "max_staleness_s": 1}, "give `at` alone"),
        ({"at": "1"}, "an epoch is an int"),
        ({"at": True}, "an epoch is an int"),
        ({"max_staleness_s": -1}, "seconds from 0 on"),
        ({"max_staleness_s": float("nan")}, "seconds from 0 on"),
    ],
)
async def test_what_cannot_be_asked(options: dict[str, Any], words: str) -> None:
    async with embedded_cluster(app) as cluster:
        with pytest.raises(BadArguments, match=words):
            await cluster.read(price, "a", seen, **options)
        with pytest.raises(BadArguments, match="an epoch is an int"):
            cluster.saw("1")  # type: ignore[arg-type]


async def test_what_may_write_is_refused() -> None:
    async with embedded_cluster(app) as cluster:
        with pytest.raises(RequestRejected, match="register it with read_only=True, or call it") as refused:
            await cluster.read(price, "a", change, 5)
        assert refused.value.code == "not_read_only"
        assert await cluster.read(price, "a", seen) == 0


async def test_too_many_are_refused_and_the_end_answers_all() -> None:
    cluster = embedded_cluster(app, limits=Limits(in_flight_max=3))
    async with cluster:
        waiting = [asyncio.ensure_future(cluster.read_request(price, "a", seen, at=50)) for _ in range(3)]
        await asyncio.sleep(0)
        refused = await cluster.read_request(price, "a", seen)
        assert refused.error is not None
        assert refused.error.code == "overloaded"
        waiting[0].cancel()
        await asyncio.sleep(0.01)
        assert cluster.engine.reads.under_way == 2
        assert (await cluster.read_request(price, "a", seen)).error is None
    for read in waiting[1:]:
        with pytest.raises(NotSent):
            await read
    with pytest.raises(NotSent):
        await cluster.read(price, "a", seen)


def test_blocking_clients_read_as_well() -> None:
    with styx.embedded_sync(app) as client:
        client.call(price, "a", change, 7)
        assert client.read(price, "a", both, freshness="strict") == [7, -7]
        assert client.read_request(price, "a", seen).epoch == client.epoch == 0
        assert client.read(discount, "a", at=0).result == -7
        assert client.read(discount, "a").tid > 0
        client.saw(5)
        assert client.epoch == 5
