"""A function that loses its writes: only it, and only them, the same ones in every execution; never the app's own."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import styx
from benchmarks.driver.lossy import SHARE_DEFAULT, Loss, LossyApp, parse
from benchmarks.driver.summary import summary
from styx import App, Context, Event, Operator
from styx.errors import ConfigurationError
from styx.testing import embedded_cluster
from tests.benchmarks.driver.made import result


class Amount(msgspec.Struct):
    """A type that only this module knows."""

    units: int


box = Operator("box", key_type=int, state_type=Amount)


@box.register
async def fill(ctx: Context, amount: Amount) -> Amount:
    await ctx.put(amount)
    return amount


@box.register
async def empty(ctx: Context) -> None:
    await ctx.delete()


@box.register
async def units(ctx: Context) -> int:
    amount = await ctx.get()
    return 0 if amount is None else int(amount.units)


@box.register
async def fill_through(ctx: Context, other: int, amount: Amount) -> int:
    """Calls by the registered function itself, and has the result as its type."""
    filled = await ctx.call(box, fill, other, (amount,))
    await ctx.put(Amount(1))
    return int(filled.units) + int(await ctx.call("box", "units", other))


app = App("boxes", [box])


def replies(lossy: LossyApp) -> list[object]:
    async def main() -> list[object]:
        async with styx.embedded(lossy.app) as client:
            return [
                await client.call(box, 1, fill, Amount(3)),
                await client.call(box, 1, units),
                await client.call(box, 2, fill_through, 3, Amount(5)),
                await client.call(box, 2, units),
                await client.call(box, 2, empty),
                await client.call(box, 2, units),
            ]

    return asyncio.run(main())


def test_only_what_the_function_writes_is_lost() -> None:
    lossy = LossyApp(app, Loss("box", "fill", 1.0))
    assert replies(lossy) == [Amount(3), 0, 5, 1, None, 0]
    assert (lossy.lost.function, lossy.lost.share, lossy.lost.invocations) == ("box.fill", 1.0, 2)


def test_deletes_are_lost_too() -> None:
    lossy = LossyApp(app, Loss("box", "empty", 1.0))
    assert replies(lossy) == [Amount(3), 3, 10, 1, None, 1]
    assert lossy.lost.invocations == 1


def test_the_workloads_app_is_as_it_was() -> None:
    before = dict(box.functions)
    LossyApp(app, Loss("box", "fill", 1.0))
    assert box.functions == before
    assert replies(LossyApp(app, Loss("box", "units", 1.0))) == [Amount(3), 3, 10, 1, None, 0]


def test_a_share_is_lost_and_the_same_one_in_every_execution() -> None:
    async def main() -> list[int]:
        # It executes everything a second time, and compares.
        async with embedded_cluster(LossyApp(app, Loss("box", "fill", 0.3)).app) as client:
            fills = [client.call(box, key, fill_through, key % 20, Amount(1)) for key in range(20, 220)]
            fills += [client.call(box, key, fill, Amount(1)) for key in range(220, 420)]
            await asyncio.gather(*fills)
            return [await client.call(box, key, units) for key in range(220, 420)]

    assert 110 <= sum(asyncio.run(main())) <= 170


def test_the_option_is_read() -> None:
    assert parse("box.fill") == Loss("box", "fill", SHARE_DEFAULT)
    assert parse("the.box.fill=0.5") == Loss("the.box", "fill", 0.5)
    assert parse("box.fill/things=0.5") == Loss("box", "fill", 0.5, "things")
    for wrong in (
        "box",
        "box.",
        ".fill",
        "box.fill/",
        "box.fill=",
        "box.fill=x",
        "box.fill=0",
        "box.fill=1.5",
        "box.fill=nan",
    ):
        with pytest.raises(ConfigurationError, match=r"OPERATOR\.FUNCTION"):
            parse(wrong)


@pytest.mark.parametrize("loss", [Loss("box", "file", 0.1), Loss("bag", "fill", 0.1)])
def test_what_is_not_there_cannot_be_lost(loss: Loss) -> None:
    with pytest.raises(ConfigurationError, match=r"box\.fill, box\.empty, box\.units, box\.fill_through"):
        LossyApp(app, loss)


class Thing(msgspec.Struct, array_like=True):
    number: int
    units: int


shelf = Operator("shelf", key_type=int, state_type=int)
things = shelf.table("things", Thing, key="number")
others = shelf.table("others", Thing, key="number")


@shelf.register
async def change(ctx: Context) -> list[int]:
    """Each kind of write; what it is told is as if they were done, one by one."""
    await ctx.put(1)
    rows = ctx.rows(things)
    await rows.put(Thing(1, 10))
    await ctx.rows(others).put(Thing(1, 10))
    inserted = await rows.insert(Thing(2, 20))
    changed = await rows.update(3, units=31)
    return [inserted.units, changed.units, await rows.delete(4), await rows.delete(5)]


@shelf.register
async def stock(ctx: Context) -> None:
    for number in (3, 4):
        await ctx.rows(things).put(Thing(number, 0))


@shelf.register
async def seen(ctx: Context) -> tuple[int | None, list[list[int]], int]:
    rows = await ctx.rows(things).select()
    return await ctx.get(), [[row.number, row.units] for row in rows], await ctx.rows(others).count()


shelves = App("shelves", [shelf])


@pytest.mark.parametrize(
    ("table", "left"),
    [
        ("", [None, [[3, 0], [4, 0]], 0]),
        ("things", [1, [[3, 0], [4, 0]], 1]),
        ("others", [1, [[1, 10], [2, 20], [3, 31]], 0]),
    ],
)
def test_rows_are_lost_of_all_tables_or_of_one(table: str, left: list[object]) -> None:
    async def main() -> None:
        lossy = LossyApp(shelves, Loss("shelf", "change", 1.0, table))
        async with styx.embedded(lossy.app) as client:
            await client.call(shelf, 1, stock)
            assert await client.call(shelf, 1, change) == [20, 31, True, False]
            assert await client.call("shelf", 1, "seen") == left
        assert lossy.lost.invocations == 1

    asyncio.run(main())


def test_a_table_that_is_not_there_cannot_be_lost() -> None:
    with pytest.raises(ConfigurationError, match="no such table; it has: things, others"):
        LossyApp(shelves, Loss("shelf", "change", 1.0, "thongs"))


def test_people_are_told_what_was_lost() -> None:
    made = result()
    lossy = LossyApp(app, Loss("box", "fill", 1.0))
    made.lost = lossy.lost
    assert "box.fill wrote in 0 invocations, a share of 1: there is nothing" in summary(made)
    replies(lossy)
    made.lost = lossy.lost
    assert "box.fill wrote in 2 invocations, a share of 1: the audit must fail" in summary(made)


def test_an_app_with_events_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="app 'told' has events, so break a function of it in a test instead"):
        LossyApp(App("told", [box], events=[Event("filled", Amount)]), Loss("box", "fill", 1.0))
