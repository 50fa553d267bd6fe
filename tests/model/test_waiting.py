"""What is begun on a context must be awaited, once and while its function runs; all executors tell it alike."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator
from styx.messages import ReplyError
from styx.testing import embedded_cluster

account = Operator("account")
other = Operator("other")
kept: list[Any] = []


@account.register
async def deposit(ctx: Context, amount: int) -> int:
    await ctx.put(await ctx.get(0) + amount)
    return amount


@account.register
async def forgets_a_call(ctx: Context, to: str) -> str:
    await ctx.put(await ctx.get(0) - 5)
    ctx.call(account, "deposit", to, (5,))  # type: ignore[unused-coroutine]
    return "paid"


@account.register
async def forgets_by_name(ctx: Context) -> None:
    ctx.state.call("other", deposit, "x", (5,))  # type: ignore[unused-coroutine]


@account.register
async def forgets_a_read(ctx: Context) -> str:
    return "rich" if ctx.get(0) else "poor"  # type: ignore[truthy-bool]


@account.register
async def forgets_an_outside_call(ctx: Context) -> None:
    ctx.call_external(len, "text")  # type: ignore[unused-coroutine]


@account.register
async def forgets_the_first_of_two(ctx: Context) -> Any:
    ctx.get()  # type: ignore[unused-coroutine]
    return await ctx.get()


@account.register
async def forgets_on_one_path(ctx: Context, awaits: bool) -> int | None:
    later = ctx.call(account, deposit, "x", (1,))
    return await later if awaits else None


@account.register
async def forgets_a_write(ctx: Context) -> None:
    ctx.put(7)
    ctx.state.put(8)
    ctx.delete()
    ctx.put(9)


@account.register
async def returns_it(ctx: Context) -> Any:
    return ctx.call(account, deposit, "x", (1,))


@account.register
async def waits_before_it_forgets(ctx: Context) -> int:
    ctx.call(account, deposit, "x", (1,))  # type: ignore[unused-coroutine]
    return int(await ctx.call(account, deposit, "x", (2,)))


@account.register
async def drives_it_by_hand(ctx: Context) -> None:
    ctx.call(account, deposit, "x", (1,)).send(None)


@account.register
async def in_a_task(ctx: Context) -> None:
    kept.append(asyncio.ensure_future(ctx.call(account, deposit, "x", (1,))))


@account.register
async def raises_before(ctx: Context) -> None:
    ctx.get().close()
    raise KeyError("mine")


FORGOTTEN = [
    (
        "forgets_a_call",
        ("b",),
        "account.forgets_a_call on 'a' made a call to account.deposit and did not await it: "
        "write `await ctx.call(…)`, or ctx.call_async",
    ),
    (
        "forgets_by_name",
        (),
        "account.forgets_by_name on 'a' made a call to other.deposit and did not await it: "
        "write `await ctx.call(…)`, or ctx.call_async",
    ),
    (
        "forgets_a_read",
        (),
        "account.forgets_a_read on 'a' did not await its ctx.get: write `await ctx.get()`",
    ),
    (
        "forgets_an_outside_call",
        (),
        "account.forgets_an_outside_call on 'a' made an outside call to builtins.len and did not await it: "
        "write `await ctx.call_external(…)`",
    ),
    ("forgets_the_first_of_two", (), "did not await its ctx.get"),
    ("forgets_on_one_path", (False,), "made a call to account.deposit and did not await it"),
    ("returns_it", (), "made a call to account.deposit and did not await it"),
    ("waits_before_it_forgets", (), "made a call to account.deposit and did not await it"),
    ("drives_it_by_hand", (), "made a call to account.deposit and did not await it"),
]


def errors(*calls: tuple[str, tuple[Any, ...]]) -> list[ReplyError | None]:
    """Of calls on one entity at once, so that all but the first are in conflict; every reply is checked serially."""

    async def run() -> list[ReplyError | None]:
        async with embedded_cluster(App("bank", [account, other])) as cluster:
            replies = await asyncio.gather(*[cluster.submit("account", "a", name, *args) for name, args in calls])
        await asyncio.gather(*kept, return_exceptions=True)
        kept.clear()
        return [reply.error for reply in replies]

    return asyncio.run(run())


@pytest.mark.parametrize(("function", "args", "told"), FORGOTTEN)
def test_what_is_not_awaited_ends_the_transaction(function: str, args: tuple[Any, ...], told: str) -> None:
    for error in errors((function, args), ("deposit", (1,)), (function, args))[::2]:
        assert error is not None
        assert error.type == "ForgottenAwait"
        assert told in error.message


def test_nothing_of_it_is_left() -> None:
    async def run() -> None:
        async with embedded_cluster(App("bank", [account, other])) as cluster:
            await cluster.request("account", "a", "forgets_a_call", "b")
            assert cluster.state() == {}

    asyncio.run(run())


@account.register
async def asks_outside_before_it_awaits(ctx: Context, awaits: bool) -> int:
    first, second, reading = ctx.call(account, deposit, "x", (1,)), ctx.call(account, deposit, "x", (2,)), ctx.get(0)
    length = await ctx.call_external(len, "text")
    return length + int(await first) + int(await second) + int(await reading) if awaits else int(await reading)


def test_python_does_not_warn_of_what_a_run_that_does_not_count_had_not_awaited() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        forgot, awaited = errors(
            ("asks_outside_before_it_awaits", (False,)), ("asks_outside_before_it_awaits", (True,))
        )
        gc.collect()
    assert awaited is None
    assert forgot is not None
    assert forgot.type == "ForgottenAwait"
    assert [str(each.message) for each in told if "never awaited" in str(each.message)] == []


def test_what_is_awaited_later_or_closed_is_not_forgotten() -> None:
    first, second = errors(("forgets_on_one_path", (True,)), ("raises_before", ()))
    assert first is None
    assert second is not None
    assert (second.type, second.message) == ("KeyError", "mine")


def test_a_write_has_happened_whether_it_is_awaited_or_not() -> None:
    async def run() -> None:
        async with embedded_cluster(App("bank", [account, other])) as cluster:
            await cluster.call("account", "a", "forgets_a_write")
            assert cluster.entity("account", "a") == 9

    asyncio.run(run())


def test_a_task_of_a_call_is_not_a_call() -> None:
    [error] = errors(("in_a_task", ()))
    assert error is not None
    assert error.type == "ForgottenAwait"


# Awaited in other ways -----------------------------------------------------------------------------------------


@account.register
async def twice(ctx: Context, catch: bool) -> str:
    reading = ctx.get(1)
    await reading
    try:
        await reading
    except RuntimeError:
        if not catch:
            raise
    return "caught"


@account.register
async def call_twice(ctx: Context) -> None:
    calling = ctx.call(account, deposit, "x", (1,))
    await calling
    await calling


@account.register
async def awaits_an_asynchronous_call(ctx: Context) -> None:
    await ctx.call_async(account, deposit, "x", (1,))  # type: ignore[misc]


@account.register
async def in_another_order(ctx: Context) -> list[int]:
    one, two, mine = ctx.call(account, deposit, "x", (1,)), ctx.call(account, deposit, "x", (2,)), ctx.get(0)
    await ctx.put(5)
    return [await two, await one, await mine, await ctx.call(account, balance, "x")]


@account.register
async def gathers(ctx: Context) -> list[int]:
    async def all_of(*awaited: Any) -> list[int]:
        return [await each for each in awaited]

    return await all_of(*[ctx.call(account, deposit, key, (n,)) for n, key in enumerate("xyz")])


@account.register
async def balance(ctx: Context) -> Any:
    return await ctx.get(0)


@account.register
async def keeps(ctx: Context) -> None:
    kept.append(ctx)


@account.register
async def uses_a_kept_one(ctx: Context) -> None:
    await kept.pop().call(account, deposit, "x", (1,))


@account.register
async def adds_to_what_was_not_awaited(ctx: Context[str, Any]) -> Any:
    return ctx.get(0) + 1  # type: ignore[operator]


@account.register
async def asks_what_was_not_awaited(ctx: Context[str, Any]) -> Any:
    return ctx.get(0).balance  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "args", "told"),
    [
        (
            "twice",
            (False,),
            ("RuntimeError", "cannot reuse already awaited coroutine: await each ctx.get(), ctx.call(…)"),
        ),
        (
            "call_twice",
            (),
            ("RuntimeError", "cannot reuse already awaited coroutine: await each ctx.get(), ctx.call(…)"),
        ),
        ("adds_to_what_was_not_awaited", (), ("TypeError", "'coroutine' and 'int': an `await` is missing")),
        ("asks_what_was_not_awaited", (), ("AttributeError", "no attribute 'balance': an `await` is missing")),
        ("awaits_an_asynchronous_call", (), ("TypeError", "ctx.call_async has no result to await: drop the `await`")),
    ],
)
def test_python_s_own_words_come_with_what_to_do(function: str, args: tuple[Any, ...], told: tuple[str, str]) -> None:
    for error in errors((function, args), (function, args)):
        assert error is not None
        assert error.type == told[0]
        assert told[1] in error.message


def test_awaiting_twice_can_be_caught_in_both_forms() -> None:
    assert errors(("twice", (True,))) == [None]


def test_order_and_gathering_are_as_they_are_awaited() -> None:
    async def run() -> None:
        async with embedded_cluster(App("bank", [account, other])) as cluster:
            assert await cluster.call("account", "a", "in_another_order") == [2, 1, 0, 3]
            assert await cluster.call("account", "b", "gathers") == [0, 1, 2]

    asyncio.run(run())


def test_a_context_of_before_is_closed() -> None:
    async def run() -> None:
        async with embedded_cluster(App("bank", [account, other])) as cluster:
            await cluster.call("account", "a", "keeps")
            reply = await cluster.request("account", "b", "uses_a_kept_one")
            assert reply.error is not None
            assert reply.error.type == "ContextClosed"
            await cluster.call("account", "a", "keeps")  # for the checker's run

    asyncio.run(run())


# Errors that a function swallows -----------------------------------------------------------------------------------


class Picky(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise {-1: KeyError("negative"), -2: SystemExit(2), -3: OSError("disk"), -4: BaseException("base")}[self.n]


picky = Operator("picky", state_type=Picky)


class BadKey(str):
    def __hash__(self) -> int:
        raise LookupError("no hash")


class BadName:
    def __hash__(self) -> int:
        raise SystemExit(3)


@picky.register
async def put_and_swallow(ctx: Context, n: int) -> str:
    value = Picky(1)
    value.n = n
    try:
        await ctx.put(value)
    except BaseException:  # noqa: BLE001 - as wrong as can be
        return "swallowed"
    return "written"


@picky.register
async def call_and_swallow(ctx: Context, what: str) -> str:
    arguments: dict[str, tuple[Any, Any]] = {"name": (BadName(), "k"), "key": ("put_and_swallow", BadKey("k"))}
    try:
        ctx.call_async(picky, *arguments[what])
    except BaseException:  # noqa: BLE001 - as wrong as can be
        return "swallowed"
    return "called"


@pytest.mark.parametrize(
    ("function", "argument", "kind"),
    [
        ("put_and_swallow", -1, "KeyError"),
        ("put_and_swallow", -2, "SystemExit"),
        ("put_and_swallow", -3, "OSError"),
        ("put_and_swallow", -4, "BaseException"),
        ("call_and_swallow", "name", "SystemExit"),
        ("call_and_swallow", "key", "BadKey"),
    ],
)
def test_an_error_of_a_context_s_method_cannot_be_swallowed(function: str, argument: Any, kind: str) -> None:
    async def run() -> None:
        async with embedded_cluster(App("picky", [picky])) as cluster:
            first, second = await asyncio.gather(*[cluster.submit("picky", "a", function, argument) for _ in range(2)])
            for reply in (first, second):
                assert reply.error is not None
                assert reply.error.type == kind
            assert cluster.state() == {}

    asyncio.run(run())
