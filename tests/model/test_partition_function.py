"""Partition functions: once on each partition, on entities of that partition only, and never for a client."""

from __future__ import annotations

from typing import Any

import pytest

from styx import App, ConfigurationError, Context, Operator, PartitionContext, TransactionAborted
from styx.deployment.fingerprint import fingerprint
from styx.deployment.package import pack_code, unpack_code
from styx.errors import UnknownFunction
from styx.messages import Request
from styx.model.limits import Limits
from styx.testing import EmbeddedCluster, SerialReference, embedded_cluster

pytestmark = pytest.mark.anyio
N_SLOTS = 4
cart = Operator("cart", key_type=int)
wide = Operator("wide", n_partitions=6, key_type=int)
other = Operator("other", n_partitions=6, key_type=int)
ask = Operator("ask")


@cart.register
@wide.register
@other.register
async def hold(ctx: Context, n: int) -> int:
    await ctx.put(n)
    return n


@cart.register(read_only=True)
@wide.register(read_only=True)
async def held(ctx: Context) -> int:
    return int(await ctx.get(0))


@wide.register_partition
async def numbered(ctx: PartitionContext, base: int = 0) -> list[Any]:
    return [ctx.partition + base, ctx.operator]


@wide.register_partition
async def fill(ctx: PartitionContext, keys: list[int], n: int) -> int:
    mine = [key for key in keys if ctx.holds(key)]
    for key in mine:
        await ctx.call(wide, hold, key, (n,))
    return len(mine)


@wide.register_partition(read_only=True)
async def total(ctx: PartitionContext, keys: list[int]) -> int:
    return sum([await ctx.at(wide, k).call(held) for k in keys if ctx.holds(k)])


@wide.register_partition
async def fails_on(ctx: PartitionContext, number: int) -> None:
    if ctx.partition == number:
        raise ValueError(f"partition {number}")


@wide.register_partition
async def strays(ctx: PartitionContext, operator: str, asynchronous: bool) -> None:
    """Calls an entity of the next partition; of the operator `other`, one of the partition with the same number."""
    declared = {"wide": wide, "other": other, "cart": cart}[operator]
    wanted = ctx.partition if declared is other else ctx.partition + 1
    key = next(
        key
        for key in range(1_000)
        if declared.partition_of(key, N_SLOTS) == wanted % (declared.n_partitions or N_SLOTS)
    )
    if asynchronous:
        ctx.call_async(declared, "hold", key, (1,))
    else:
        await ctx.call(operator, "hold", key, (1,))


@wide.register_partition(read_only=True)
async def writes_secretly(ctx: PartitionContext) -> None:
    await ctx.call(wide, hold, next(k for k in range(99) if wide.partition_of(k, 4) == ctx.partition), (1,))


@cart.register_partition
async def facts(ctx: PartitionContext) -> list[Any]:
    return [ctx.partition, ctx.unique_id(), str(ctx.uuid()), ctx.random().random(), ctx.transaction_id]


@ask.register
async def every(ctx: Context, operator: str, function: str, params: list[Any]) -> list[Any]:
    return await ctx.call_all(operator, function, params)


@ask.register(read_only=True)
async def look(ctx: Context, function: str, params: list[Any]) -> list[Any]:
    return await ctx.call_all(wide, function, params)


@ask.register
async def start(ctx: Context, keys: list[int], n: int) -> None:
    ctx.call_all_async(wide, fill, (keys, n))


@ask.register
async def careless(ctx: Context) -> None:
    ctx.call_all(wide, numbered)  # type: ignore[unused-coroutine]


@ask.register
async def one(ctx: Context, operator: str, function: str) -> Any:
    return await ctx.call(operator, function, 1)


app = App("parts", [cart, wide, other, ask])


def started(limits: Limits | None = None) -> EmbeddedCluster:
    return embedded_cluster(app, n_slots=N_SLOTS, limits=limits)


async def test_a_partition_function_runs_once_on_each_partition_and_the_results_are_in_order() -> None:
    async with started() as cluster:
        assert await cluster.call(ask, "a", "every", "wide", "numbered", [10]) == [
            [10 + number, "wide"] for number in range(6)
        ]
        found = await cluster.call(ask, "a", "every", "cart", "facts", [])
    assert [each[0] for each in found] == list(range(N_SLOTS)), "without n_partitions there is one for each slot"
    assert len({each[1] for each in found}) == len({each[3] for each in found}) == N_SLOTS
    assert len({each[4] for each in found}) == 1


async def test_they_reach_each_entity_of_their_partition_in_the_transaction_of_the_caller() -> None:
    keys = list(range(50))
    async with started() as cluster:
        assert sum(await cluster.call(ask, "a", "every", "wide", "fill", [keys, 3])) == 50
        assert sum(await cluster.call(ask, "b", "look", "total", [keys])) == 150
        await cluster.call(ask, "c", "start", keys, 4)
        assert sum(await cluster.call(ask, "d", "look", "total", [keys])) == 200


async def test_an_exception_on_one_partition_ends_the_transaction() -> None:
    async with started() as cluster:
        with pytest.raises(TransactionAborted, match="partition 4"):
            await cluster.call(ask, "a", "every", "wide", "fails_on", [4])


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("operator", ["wide", "cart"])
async def test_another_partition_cannot_be_called(operator: str, asynchronous: bool) -> None:
    async with started() as cluster:
        with pytest.raises(TransactionAborted, match=r"wide\.strays on partition 0 called") as caught:
            await cluster.call(ask, "a", "every", "wide", "strays", [operator, asynchronous])
    assert caught.value.type == "OtherPartition"


async def test_an_operator_with_as_many_partitions_can_be_called() -> None:
    async with started() as cluster:
        await cluster.call(ask, "a", "every", "wide", "strays", ["other", False])


async def test_read_only_holds_on_partitions_too() -> None:
    async with started() as cluster:
        with pytest.raises(TransactionAborted, match="may write, but is registered with read_only"):
            await cluster.call(ask, "a", "every", "wide", "writes_secretly", [])
        with pytest.raises(TransactionAborted, match="may write, but is registered with read_only"):
            await cluster.call(ask, "a", "look", "numbered", [])


async def test_a_call_that_is_not_awaited_is_refused() -> None:
    async with started() as cluster:
        with pytest.raises(TransactionAborted, match=r"wide.numbered, and did not await it: write `await ctx.call_all"):
            await cluster.call(ask, "a", "careless")


async def test_each_partition_counts_as_a_call() -> None:
    async with started(Limits(invocations_max=7)) as cluster:
        await cluster.call(ask, "a", "every", "wide", "numbered", [])
    async with started(Limits(invocations_max=6)) as cluster:
        with pytest.raises(TransactionAborted, match="invocations_max"):
            await cluster.call(ask, "a", "every", "wide", "numbered", [])


@pytest.mark.parametrize("function", ["every", "look"])
async def test_the_calls_that_partitions_make_add_up(function: str) -> None:
    """Also those of a read-only transaction, which knows its count as long as nothing runs at once."""
    arguments = ["wide", "total", [list(range(6))]] if function == "every" else ["total", [list(range(6))]]
    async with started(Limits(invocations_max=13)) as cluster:
        await cluster.call(ask, "a", function, *arguments)
    async with started(Limits(invocations_max=12)) as cluster:
        with pytest.raises(TransactionAborted, match="invocations_max"):
            await cluster.call(ask, "a", function, *arguments)


@pytest.mark.parametrize(
    ("operator", "function", "told"),
    [
        ("wide", "numbered", "It is a partition function, which runs on all partitions"),
        ("wide*", "numbered", r"has no operator 'wide\*'"),
    ],
)
async def test_a_function_cannot_call_one_partition(operator: str, function: str, told: str) -> None:
    async with started() as cluster:
        with pytest.raises(TransactionAborted, match=told):
            await cluster.call(ask, "a", "one", operator, function)


async def test_call_all_names_the_partition_functions_that_there_are() -> None:
    async with started() as cluster:
        with pytest.raises(TransactionAborted, match="has no partition function 'hold'; it has: facts"):
            await cluster.call(ask, "a", "every", "cart", "hold", [1])


def test_a_request_for_one_partition_is_refused() -> None:
    """Also after a function has called it: a client's request is looked up in another place."""
    app.resolve_call("wide*", "numbered")
    outcome = SerialReference(app).run(1, 1, Request("r", "wide*", 0, "numbered", b"\x90"))
    assert outcome.error is not None
    assert outcome.error[1] == "UnknownOperator"
    assert ("wide*", "numbered") not in app.resolved, "admission looks there first"


def test_names_are_unique_among_both_kinds() -> None:
    operator = Operator("o")
    operator.register(hold)
    with pytest.raises(ConfigurationError, match="has a function 'hold' already"):
        operator.register_partition(hold)

    async def counted(ctx: PartitionContext) -> int:
        return 1

    operator.register_partition(counted)
    with pytest.raises(ConfigurationError, match="has a function 'counted' already"):
        operator.register(counted)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="is not an `async def` function"):
        operator.register_partition(len)  # type: ignore[type-var]
    with pytest.raises(UnknownFunction, match="it has: counted"):
        operator.partitions.function([])


def test_a_wrong_annotation_fails_when_the_app_is_built() -> None:
    operator = Operator("o")

    async def wrong(ctx: PartitionContext, n: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
        return 1

    operator.register_partition(wrong)
    with pytest.raises(ConfigurationError, match="cannot be resolved"):
        App("a", [operator])


def test_the_fingerprint_knows_partition_functions_and_their_hints() -> None:
    def made(read_only: bool | None) -> str:
        operator = Operator("o")
        if read_only is not None:
            operator.register_partition(read_only=read_only)(numbered)
        return fingerprint(App("a", [operator]), [])

    assert len({made(None), made(False), made(True)}) == 3


async def test_a_packed_app_has_them() -> None:
    unpacked = unpack_code(pack_code(app).payload)
    assert unpacked.operator("wide").partitions.function("total").read_only
    async with embedded_cluster(unpacked, n_slots=N_SLOTS) as cluster:
        found = await cluster.call("ask", "a", "every", "wide", "numbered", [10])
        assert found == [[10 + number, "wide"] for number in range(6)]
        assert sum(await cluster.call("ask", "a", "every", "wide", "fill", [[1, 2], 3])) == 2
