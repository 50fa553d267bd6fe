"""An entity's sequences: numbers without gaps, beside the state, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator, TransactionAborted
from styx.model.limits import Limits
from styx.model.row_store import SERIAL_PREFIX
from styx.model.sequence import NUMBER_MAX, entry_of, table_of
from styx.model.table_names import entities_of, owner_of
from styx.testing import EmbeddedCluster, SerialReference, embedded_cluster
from styx.testing.serial import State

pytestmark = pytest.mark.anyio
shop = Operator("shop")
till = Operator("till", key_type=(str, int))


@shop.register
async def bill(ctx: Context, name: str = "bills", fail: bool = False) -> int:
    number = await ctx.sequence(name).next()
    if fail:
        raise ValueError("no bill")
    return number


@shop.register
async def told(ctx: Context) -> list[Any]:
    """Within one transaction a function sees what it has taken."""
    bills = ctx.sequence("bills")
    found = [await bills.last(), await bills.next(), await bills.next(), await bills.last()]
    return [*found, await ctx.get()]


@shop.register
async def last(ctx: Context, name: str = "bills") -> int:
    return await ctx.sequence(name).last()


@shop.register
async def restart(ctx: Context, after: Any = 0) -> None:
    await ctx.sequence("bills").restart(after)


@shop.register
async def remove(ctx: Context) -> Any:
    await ctx.put(1)
    await ctx.sequence("bills").next()
    await ctx.delete()
    return await ctx.get()


@shop.register
async def forgotten(ctx: Context) -> None:
    ctx.sequence("bills").next()  # type: ignore[unused-coroutine]


@shop.register
async def unread(ctx: Context) -> None:
    ctx.sequence("bills").last()  # type: ignore[unused-coroutine]


kept: list[Any] = []


@shop.register
async def keep(ctx: Context) -> None:
    kept.append(ctx.sequence("bills"))


@shop.register
async def use_kept(ctx: Context) -> int:
    return int(await kept.pop().next())


@shop.register
async def many(ctx: Context, n: int) -> None:
    for _ in range(n):
        await ctx.sequence("bills").next()


@shop.register
async def via_branches(ctx: Context, to: str) -> None:
    for _ in range(3):
        ctx.call_async(shop, bill, to)


@shop.register
async def via_call(ctx: Context, to: str) -> list[int]:
    first = await ctx.call(shop, bill, to)
    return [first, await ctx.sequence("bills").next(), await ctx.call(shop, bill, to)]


@shop.register
async def via_number(ctx: Context, left: int) -> int:
    """A number decides who gives the next one; nothing else is read or written."""
    number = await ctx.sequence("bills").next()
    return await ctx.call(shop, via_number, f"s{number % 5}", (left - 1,)) if left else number


@till.register
async def receipt(ctx: Context) -> int:
    return await ctx.sequence("receipts").next()


@shop.register(local=True)
async def bill_here(ctx: Context, fail: bool = False) -> int:
    number = await ctx.sequence("bills").next()
    if fail:
        raise ValueError("no bill")
    return number


@shop.register(read_only=True)
async def look(ctx: Context) -> int:
    return await ctx.sequence("bills").last()


@shop.register(read_only=True)
async def look_and_take(ctx: Context) -> int:
    return await ctx.sequence("bills").next()


@shop.register(read_only=True)
async def look_and_restart(ctx: Context) -> None:
    await ctx.sequence("bills").restart(after=5)


app = App("shops", [shop, till])


async def aborted(cluster: EmbeddedCluster, *request: Any) -> tuple[str, str]:
    with pytest.raises(TransactionAborted) as raised:
        await cluster.call(*request)
    return raised.value.type, raised.value.message


async def test_numbers_begin_at_one_and_have_no_gaps() -> None:
    async with embedded_cluster(app) as cluster:
        fails = [cluster.submit("shop", "a", "bill", "bills", number % 3 == 0) for number in range(90)]
        replies = [await reply for reply in fails]
        assert sorted(reply.result for reply in replies if reply.error is None) == list(range(1, 61))
        assert await cluster.call("shop", "a", "last") == 60


async def test_local_functions_take_numbers_without_gaps_and_read_only_ones_see_the_last() -> None:
    async with embedded_cluster(app) as cluster:
        functions = ("bill_here", "bill")
        for number in range(60):
            cluster.submit("shop", "a", functions[number % 2], *(["bills"] if number % 2 else []), number % 3 == 0)
        assert await cluster.call("shop", "a", "bill_here") == 41
        assert await cluster.call("shop", "a", "look") == 41


@pytest.mark.parametrize(("function", "method"), [("look_and_take", "next"), ("look_and_restart", "restart")])
async def test_a_read_only_function_takes_no_number(function: str, method: str) -> None:
    async with embedded_cluster(app) as cluster:
        kind, message = await aborted(cluster, "shop", "a", function)
        assert kind == "ReadOnlyViolation"
        assert f"used ctx.sequence(…).{method}" in message
        assert await cluster.call("shop", "a", "look") == 0


async def test_names_and_entities_are_apart() -> None:
    async with embedded_cluster(app) as cluster:
        for expected in (1, 2):
            assert await cluster.call("shop", "a", "bill") == expected
            assert await cluster.call("shop", "a", "bill", "credit notes") == expected
            assert await cluster.call("shop", "b", "bill") == expected
            assert await cluster.call("till", ("a", 1), "receipt") == expected
            assert await cluster.call("till", ("a", 2), "receipt") == expected


async def test_a_function_sees_its_own_numbers_and_the_state_is_apart() -> None:
    async with embedded_cluster(app) as cluster:
        assert await cluster.call("shop", "a", "told") == [0, 1, 2, 2, None]
        assert cluster.entity("shop", "a") is None
        assert cluster.state() == {}
        assert cluster.engine.encoded_state() == {("shop/<sequences>", ("a", "bills")): b"\x02"}


async def test_deleting_the_entity_keeps_its_sequences_and_restart_ends_them() -> None:
    """A number that stands on somebody's invoice is not given again because a record was deleted."""
    async with embedded_cluster(app) as cluster:
        assert await cluster.call("shop", "a", "remove") is None
        assert await cluster.call("shop", "a", "bill") == 2
        await cluster.call("shop", "a", "restart", 10_412)
        assert await cluster.call("shop", "a", "bill") == 10_413
        await cluster.call("shop", "a", "restart")
        assert cluster.engine.encoded_state() == {}
        assert await cluster.call("shop", "a", "bill") == 1


async def test_branches_and_calls_take_numbers_in_their_order() -> None:
    async with embedded_cluster(app) as cluster:
        replies = [cluster.submit("shop", f"x{n}", "via_branches", "a") for n in range(20)]
        replies += [cluster.submit("shop", f"x{n}", "via_call", "a") for n in range(20)]
        for reply in replies:
            assert (await reply).error is None
        assert await cluster.call("shop", "a", "last") == 100
        assert await cluster.call("shop", "b", "via_call", "b") == [1, 2, 3]


async def test_numbers_that_decide_who_gives_the_next_one() -> None:
    """No entity has a state, so that a transaction that need not run again is told by its numbers alone."""
    async with embedded_cluster(app) as cluster:
        replies = [cluster.submit("shop", f"s{n % 5}", "via_number", 3) for n in range(30)]
        for reply in replies:
            assert (await reply).error is None
        assert sum([await cluster.call("shop", f"s{n}", "last") for n in range(5)]) == 30 * 4


async def test_what_is_refused() -> None:
    async with embedded_cluster(app, limits=Limits(operations_max=5)) as cluster:
        for name in ("", "n" * 129, "two\nlines", "\ud800"):
            if name.isascii():
                kind, text = await aborted(cluster, "shop", "a", "bill", name)
                assert kind == "UnsupportedValue"
                assert "a sequence's name is a text of 1 to 128 printable characters" in text
        for after in (-1, 2**63, 1.0, "7", True):
            kind, text = await aborted(cluster, "shop", "a", "restart", after)
            assert kind == "UnsupportedValue"
            assert "sequence 'bills' of shop['a'] restarts after a whole number from 0 to" in text
        assert (await aborted(cluster, "shop", "a", "many", 6))[0] == "OperationLimitExceeded"
        kind, text = await aborted(cluster, "shop", "a", "forgotten")
        assert kind == "ForgottenAwait"
        assert "did not await next() of its sequence 'bills' of shop['a']: write `await ctx.sequence(…).next()`" in text
        assert "write `await ctx.sequence(…).last()`" in (await aborted(cluster, "shop", "a", "unread"))[1]
        await cluster.call("shop", "a", "keep")
        assert (await aborted(cluster, "shop", "b", "use_kept"))[0] == "ContextClosed"
        await cluster.call("shop", "a", "restart", NUMBER_MAX - 1)
        assert await cluster.call("shop", "a", "bill") == NUMBER_MAX
        kind, text = await aborted(cluster, "shop", "a", "bill")
        assert (kind, text) == ("UnsupportedValue", "sequence 'bills' of shop['a'] has given its last number")


def test_where_they_are_kept() -> None:
    table = table_of("till")
    assert owner_of(table) == owner_of("till") == "till"
    entries = [entry_of(("a", 1), "receipts"), entry_of(("a", 2), "receipts")]
    assert list(entities_of(till, table, entries)) == [("a", 1), ("a", 2)]
    assert list(entities_of(shop, table_of("shop"), [entry_of("a", "bills")])) == ["a"]
    assert list(entities_of(shop, "shop", ["a", "b"])) == ["a", "b"]


class Line(msgspec.Struct):
    number: int = 0


BROUGHT = [(("a", 1), 7), (("a", 1), 5), (("a", 2), 3), (("b", 1), 4), (("c", 1), -1)]


def test_another_version_keeps_them_in_the_serial_reference() -> None:
    reference = SerialReference(app)
    reference.state[table_of("shop"), ("a", "bills")] = b"\x05"
    reference.begin_version(App("shops", [shop]))
    assert reference.state == {(table_of("shop"), ("a", "bills")): b"\x05"}
    with pytest.raises(ValueError, match="the version has no operator 'shop'"):
        reference.begin_version(App("shops", [till]))


def test_numbers_of_rows_begin_behind_those_that_are_there_in_the_serial_reference() -> None:
    cart = Operator("cart", key_type=(str, int))
    lines = cart.table("lines", Line, key="number", auto="serial")
    reference = SerialReference(App("shop", [cart]))
    rows: State = {("cart/lines", (*entity, number)): lines.encode_state(Line(number)) for entity, number in BROUGHT}
    last: State = {(table_of("cart"), ("b", 1, SERIAL_PREFIX + "lines")): b"\x09"}
    reference.state = rows | last
    reference.begin_version(App("shop", [cart]))
    first: State = {
        (table_of("cart"), ("a", 1, SERIAL_PREFIX + "lines")): b"\x07",
        (table_of("cart"), ("a", 2, SERIAL_PREFIX + "lines")): b"\x03",
    }
    assert reference.state == rows | last | first
