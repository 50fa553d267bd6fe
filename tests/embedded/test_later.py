"""Calls after commit and at a time, in an embedded engine."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import App, Context, Operator, Retry, TransactionAborted

pytestmark = pytest.mark.anyio

order = Operator("order", key_type=str)
mail = Operator("mail", key_type=str)
SOON = timedelta(milliseconds=30)


@order.register
async def place(ctx: Context, delay_s: float) -> None:
    await ctx.put("reserved")
    ctx.after(timedelta(seconds=delay_s), order, expire, ctx.key, name="expiry")
    ctx.after_commit(mail, send, ctx.key, (f"{ctx.key} is reserved",))


@order.register
async def pay(ctx: Context) -> bool:
    await ctx.put("paid")
    return await ctx.cancel("expiry")


@order.register
async def expire(ctx: Context) -> None:
    await ctx.put(f"expired {ctx.now().timestamp()}")


@order.register
async def count(ctx: Context, n: int, to: str) -> None:
    for number in range(n):
        ctx.after_commit(mail, send, to, (number,))


@order.register
async def gives_and_fails(ctx: Context) -> None:
    ctx.after_commit(mail, send, ctx.key, ("never",))
    raise ValueError("no")


@order.register
async def fruitless(ctx: Context, attempts: int) -> None:
    ctx.after_commit(mail, refuse, ctx.key, retry=Retry(attempts, timedelta(milliseconds=5)))


@order.register
async def wrong(ctx: Context, what: str) -> None:
    if what == "function":
        ctx.after_commit(mail, "nothing", "a")
    elif what == "key":
        ctx.after(SOON, mail, send, 7, ("x",))
    elif what == "delay":
        ctx.after(5, mail, send, "a", ("x",))  # type: ignore[call-overload]
    elif what == "await":
        ctx.cancel("expiry")  # type: ignore[unused-coroutine]
    else:
        ctx.after(SOON, mail, send, "a", ("x",), name="")


@order.register(read_only=True)
async def looks(ctx: Context) -> None:
    ctx.after_commit(mail, send, "a", ("x",))


@order.register(read_only=True)
async def status(ctx: Context) -> Any:
    return await ctx.get()


@mail.register
async def send(ctx: Context, what: Any) -> None:
    await ctx.put([*await ctx.get([]), what])


@mail.register
async def refuse(ctx: Context) -> None:
    raise ConnectionError("the mailbox is full")


app = App("later", [order, mail])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - an engine's state tells nobody
            await asyncio.sleep(0.005)


async def test_what_is_not_paid_expires_not_before_its_time() -> None:
    async with styx.embedded(app) as client:
        before = time.time()
        await client.call(order, "a", place, 0.2)
        await client.call(order, "b", place, 0.2)
        assert await client.call(order, "b", pay) is True
        await until(lambda: str(client.entity(order, "a")).startswith("expired"))
        assert float(client.entity(order, "a").split()[1]) >= before + 0.2
        assert client.entity(order, "b") == "paid"
        assert await client.call(order, "b", pay) is False
        assert (client.entity(mail, "a"), client.entity(mail, "b")) == (["a is reserved"], ["b is reserved"])


async def test_calls_of_one_giver_arrive_in_their_order_and_once() -> None:
    async with styx.embedded(app) as client:
        await asyncio.gather(*[client.call(order, "a", count, 300, "m") for _ in range(3)])
        await until(lambda: len(client.entity(mail, "m") or ()) == 900)
        assert client.entity(mail, "m") == list(range(300)) * 3


async def test_an_aborted_transaction_gives_nothing() -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(TransactionAborted, match="no"):
            await client.call(order, "a", gives_and_fails)
        await client.call(order, "a", count, 1, "a")
        await until(lambda: client.entity(mail, "a") is not None)
        assert client.entity(mail, "a") == [0]


async def test_a_named_call_takes_the_place_of_the_one_before() -> None:
    async with styx.embedded(app) as client:
        await client.call(order, "a", place, 0.05)
        await client.call(order, "a", place, 3600.0)
        await client.call(order, "b", place, 0.1)
        await until(lambda: str(client.entity(order, "b")).startswith("expired"))
        assert client.entity(order, "a") == "reserved"


async def test_what_aborts_is_tried_again_and_then_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "styx.functions"):
        async with styx.embedded(app) as client:
            await client.call(order, "a", fruitless, 3)
            await until(lambda: "given up" in caplog.text)
    [text] = [record.getMessage() for record in caplog.records if "given up" in record.getMessage()]
    assert text == (
        "a call of mail.refuse on 'a', given for later by order['a'], was given up after 3 attempts: ConnectionError: "
        "the mailbox is full. It is kept among the dead calls of order (styx dead list)"
    )


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_what_was_given_outlives_the_engine(tmp_path: Path, end: str) -> None:
    async with styx.embedded(app, tmp_path) as client:
        await client.call(order, "a", place, 0.3)
        await client.call(order, "a", count, 50, "m")
        if end == "crash":
            await client.engine.flushed()
            client.crash()
    async with styx.embedded(app, tmp_path) as client:
        await until(lambda: len(client.entity(mail, "m") or ()) == 50)
        await until(lambda: str(client.entity(order, "a")).startswith("expired"))
        assert client.entity(mail, "m") == list(range(50))
        assert client.entity(mail, "a") == ["a is reserved"]


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("function", "operator 'mail' has no function 'nothing'"),
        ("key", "operator 'mail' has keys of type str"),
        ("delay", r"ctx\.after takes a timedelta"),
        ("await", r"did not await its ctx\.cancel"),
        ("name", "the name of a call for later"),
    ],
)
async def test_what_cannot_be_given_is_refused_where_it_is_given(what: str, text: str) -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(TransactionAborted, match=text):
            await client.call(order, "a", wrong, what)


async def test_a_read_only_function_gives_nothing() -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(TransactionAborted, match="after_commit"):
            await client.call(order, "a", looks)


async def test_no_client_can_deliver() -> None:
    async with styx.embedded(app) as client:
        for name in ("<deliver>", "<put off>"):
            with pytest.raises(styx.RequestRejected, match="no function"):
                await client.call(order, "a", name)


def shop(*operators: Operator, function: str = "send") -> App:
    """A version of an app: its `order` entities, if they are given, give calls of `mail`."""

    async def post(ctx: Context, text: str) -> None:
        await ctx.put(text)

    async def give(ctx: Context) -> None:
        ctx.after(timedelta(hours=1), "mail", "send", "ada", ("hello",))

    post.__name__ = function
    for operator in operators:
        operator.register(post if operator.name == "mail" else give)
    return App("shop", operators)


@pytest.mark.parametrize(
    ("operators", "function", "text"),
    [
        (["order", "mail"], "post", "it calls mail.send later, which the new version does not have"),
        (["order"], "send", "it calls mail.send later, which the new version does not have"),
        (["mail"], "send", r"the data has 12 calls for later, \('o\d+', '\w+\.\w+'\) for example, of operator 'order'"),
    ],
)
async def test_a_version_that_cannot_make_what_was_given_is_refused(
    tmp_path: Path, operators: list[str], function: str, text: str
) -> None:
    async with styx.embedded(shop(Operator("order"), Operator("mail")), tmp_path) as client:
        for number in range(12):
            await client.call("order", f"o{number}", "give")
    with pytest.raises(styx.ConfigurationError) as refused:
        async with styx.embedded(shop(*map(Operator, operators), function=function), tmp_path):
            pass
    told = str(refused.value)
    assert re.search(text, told)
    assert told.count("it calls") in (0, 10)
    async with styx.embedded(shop(Operator("order"), Operator("mail")), tmp_path) as client:
        assert client.engine.worker.given_for_later == 12
