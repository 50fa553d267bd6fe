"""Kept events of an embedded engine: they end by the clock alone, survive crashes, and change with the app."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from styx import App, Context, Event, KeptEvent, Operator, PartitionContext
from styx.errors import ConfigurationError
from styx.model.kept_event import OF_PARTITION
from styx.relational.conditions import at_least
from styx.testing import EmbeddedCluster, embedded_cluster
from tests.embedded.app_files import Edited

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)
ENDS = ["close", "crash"]


class Paid(msgspec.Struct):
    amount: int


def shop() -> App:
    order = Operator("order", n_partitions=2)
    paid, noted = Event("paid", Paid, rows=DAY), Event("noted", Paid, rows=True)

    @order.register
    async def pay(ctx: Context, amount: int) -> None:
        ctx.emit(paid, Paid(amount))
        ctx.emit(noted, Paid(amount), key="elsewhere")

    @order.register
    async def history(ctx: Context, hours: int | None = None) -> list[int]:
        if hours is None:
            return [row.value.amount for row in await ctx.rows(paid).select(scan=True)]
        since = ctx.now() - timedelta(hours=hours)
        return [row.value.amount for row in await ctx.rows(paid).select(time=at_least(since))]

    @order.register
    async def audit(ctx: Context) -> list[KeptEvent[Paid]]:
        found: list[KeptEvent[Paid]] = await ctx.rows(noted).select(scan=True)
        return found

    @order.register_partition
    async def of_partition(ctx: PartitionContext, since: int) -> list[Any]:
        rows = await ctx.rows(noted).select(by=OF_PARTITION)
        return [[key, row.value.amount] for key, row in rows if row.value.amount >= since]

    @order.register
    async def everywhere(ctx: Context, since: int) -> list[Any]:
        found = await ctx.call_all(order, of_partition, (since,))
        return sorted([pair for part in found for pair in part])

    return App("shop", [order], events=[paid, noted])


async def history(cluster: EmbeddedCluster, *arguments: Any) -> Any:
    return await cluster.call("order", "a", "history", *arguments)


async def test_they_end_by_the_clock_alone_and_others_stay() -> None:
    app = shop()
    async with embedded_cluster(app) as cluster:
        await cluster.call("order", "a", "pay", 1)
        await cluster.advance(DAY / 2)
        await cluster.call("order", "a", "pay", 2)
        assert await history(cluster) == [1, 2]
        assert await history(cluster, 1) == [2]
        await cluster.advance(DAY * 0.6)
        assert await history(cluster) == [2]
        await cluster.advance(DAY)
        assert await history(cluster) == []
        assert [row.value for row in cluster.rows(app.kept_table("order", app.events["noted"]), "a")] == [
            Paid(1),
            Paid(2),
        ]


async def test_a_result_and_the_log_tell_the_same() -> None:
    app = shop()
    async with embedded_cluster(app) as cluster:
        for amount in range(5):
            await cluster.call("order", "a", "pay", amount)
        rows = cluster.rows(app.kept_table("order", app.events["paid"]), "a")
        events = await cluster.events(app.events["paid"])
        assert [(row.place, row.time, row.version, row.value) for row in rows] == [
            (event.id, event.time, event.version, event.value) for event in events
        ]
        function: Any = app.operator("order").functions["audit"].func
        audit = await cluster.call("order", "a", function)
        assert [(type(row), row.value) for row in audit] == [(KeptEvent, Paid(amount)) for amount in range(5)]


async def test_a_function_reads_those_of_all_entities_by_partitions() -> None:
    async with embedded_cluster(shop()) as cluster:
        for amount, key in enumerate("abcabc"):
            await cluster.call("order", key, "pay", amount)
        assert await cluster.call("order", "z", "everywhere", 2) == [["a", 3], ["b", 4], ["c", 2], ["c", 5]]


SOURCE = """
from datetime import timedelta
from styx import Event

class Paid(msgspec.Struct):
    {fields}

acc = Operator("acc")
paid = Event("paid", Paid{more})

@acc.register
async def pay(ctx: Context, amount: int) -> None:
    ctx.emit(paid, Paid(amount))

@acc.register
async def history(ctx: Context) -> Any:
    return [[row.version, msgspec.to_builtins(row.value)] for row in await ctx.rows(paid).select(scan=True)]

app = App("bank", [acc], events=[paid]{app})
"""


def bank(edited: Edited, more: str = ", rows=True", fields: str = "amount: int", app: str = "") -> App:
    return edited.source(SOURCE.format(fields=fields, more=more, app=app))


async def paid_once(edited: Edited, end: str, rows: str = ", rows=True") -> None:
    async with edited.open(bank(edited, rows)) as client:
        await client.call("acc", "a", "pay", 1)
        if end == "crash":
            client.crash()


@pytest.mark.parametrize("end", ENDS)
async def test_they_are_there_after_a_start_each_once(edited: Edited, end: str) -> None:
    for number in range(1, 4):
        await paid_once(edited, end)
        async with edited.open(bank(edited)) as client:
            assert await client.call("acc", "a", "history") == [[1, {"amount": 1}]] * number
            events = await client.events("paid", follow=False)
            assert [row.place for row in client.rows("acc/paid", "a")] == [event.id for event in events]


@pytest.mark.parametrize("end", ENDS)
async def test_rows_that_are_kept_no_more_are_dropped_by_name(edited: Edited, end: str) -> None:
    await paid_once(edited, end)
    with pytest.raises(
        ConfigurationError,
        match=r"'acc/<kept paid>' has rows, .*declare event 'paid' with rows=True, .*drops=\[\"acc/<kept paid>\"\]",
    ):
        async with edited.open(bank(edited, "")):
            pass
    async with edited.open(bank(edited, "", app=", drops=['acc/<kept paid>']")) as client:
        assert client.state() == {}
    async with edited.open(bank(edited)) as client:
        assert await client.call("acc", "a", "history") == []


@pytest.mark.parametrize("end", ENDS)
async def test_what_was_kept_for_ever_ends_when_a_version_says_so(edited: Edited, end: str) -> None:
    await paid_once(edited, end)
    async with edited.open(bank(edited, ", rows=timedelta(days=1)")) as client:
        assert await client.call("acc", "a", "history") == [[1, {"amount": 1}]]
        await client.engine.set_forward(int(DAY.total_seconds() * 2_000_000))
        await client.call("acc", "a", "pay", 2)
        assert (await client.call("acc", "a", "history"))[-1] == [1, {"amount": 2}]
        while len(await client.call("acc", "a", "history")) > 1:
            pass


@pytest.mark.parametrize("end", ENDS)
async def test_a_new_version_of_the_type_reads_what_was_kept_or_is_refused(edited: Edited, end: str) -> None:
    await paid_once(edited, end)
    with pytest.raises(ConfigurationError, match=r"acc/<kept paid>\[\('a', '.*missing required field 'by'"):
        async with edited.open(bank(edited, ", rows=True, version=2", "amount: int\n    by: str")):
            pass
    grown = bank(edited, ", rows=True, version=2", "amount: int\n    by: str = ''")
    async with edited.open(grown) as client:
        await client.call("acc", "a", "pay", 2)
        found = await client.call("acc", "a", "history")
        assert found == [[1, {"amount": 1, "by": ""}], [2, {"amount": 2, "by": ""}]]
