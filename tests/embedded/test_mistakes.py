"""What an engine tells of its app's mistakes, and of what functions say: once, of the run that counted."""

import asyncio
import gc
import json
import logging
from collections.abc import Generator
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

import styx
from styx import App, Context, Operator
from styx.client.embedded import EmbeddedClient
from styx.reports.function_reports import SHOWN_PER_SECOND_MAX
from styx.worker.notes import CAPTURES_MAX

pytestmark = pytest.mark.anyio
account = Operator("account")


class Poor(Exception):
    """What the app raises on purpose."""


@account.register
async def bug(ctx: Context) -> object:
    return {"a": 1}["b"]


@account.register
async def pay(ctx: Context, amount: int) -> None:
    balance = await ctx.get(0)
    ctx.log("sees", balance=balance)
    if balance < amount:
        raise Poor(f"{balance}")
    await ctx.put(balance - amount)


@account.register
async def broken_when_empty(ctx: Context) -> None:
    balance = await ctx.get(0)
    ctx.log.warning("takes one", left=10 // balance)
    await ctx.put(balance - 1)


@account.register
async def put(ctx: Context, amount: int) -> None:
    await ctx.put(amount)


@account.register
async def forgets(ctx: Context) -> None:
    ctx.call(account, put, "other", (5,))  # type: ignore[unused-coroutine]


@account.register
async def unsendable(ctx: Context) -> object:
    return object()


@account.register
async def calls_with_a_word(ctx: Context) -> None:
    ctx.call_async(account, put, "other", ("much",))


@account.register
async def calls_a_bug(ctx: Context) -> None:
    await ctx.call(account, bug, "other")


@account.register
async def two_bugs(ctx: Context) -> None:
    ctx.call_async(account, bug, "first")
    ctx.call_async(account, wrong_call, "second")


@account.register
async def wrong_call(ctx: Context) -> None:
    ctx.call_async(account, "no_such", "x")


@account.register
async def sleeps(ctx: Context) -> None:
    await asyncio.sleep(1)


@account.register
async def draws_from_nothing(ctx: Context) -> None:
    next(iter(()))  # Python makes a RuntimeError of its StopIteration, with no line of the app's


def falls() -> None:
    raise RuntimeError("the service is away")


@account.register
async def outside(ctx: Context) -> None:
    await ctx.call_external(falls)


class Unreadable(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__name__", "__qualname__"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


class Unnamed(Exception, metaclass=Unreadable):
    pass


class Untraced(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no traceback")


class Awaited(metaclass=Unreadable):
    def __await__(self) -> Generator[Any, None, None]:
        yield self


@account.register
async def raises_unnamed(ctx: Context) -> None:
    raise Unnamed("x")


@account.register
async def raises_untraced(ctx: Context) -> None:
    raise Untraced("x")


@account.register
async def awaits_unnamed(ctx: Context) -> None:
    await Awaited()


app = App("bank", operators=[account])


def kept(client: EmbeddedClient) -> list[dict[str, Any]]:
    mistakes: list[dict[str, Any]] = json.loads(client.engine.reports.mistakes.page())["mistakes"]
    return mistakes


async def test_a_mistake_is_told_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    async with styx.embedded(app) as client:
        reply = await client.request("account", "alice", "bug")
        assert reply.error is not None
        assert (reply.error.type, reply.error.message, reply.error.code) == ("KeyError", "b", "aborted")
        [record] = caplog.records
        line = bug.__code__.co_firstlineno + 2
        assert (record.name, record.levelname) == ("styx.mistakes", "ERROR")
        head, place, source = record.getMessage().splitlines()
        assert head == f"account/alice.bug aborted: KeyError: b  (tid {reply.tid}, epoch {reply.epoch})"
        assert place.endswith(f"test_mistakes.py:{line} in bug")
        assert source.strip() == 'return {"a": 1}["b"]'
        [mistake] = kept(client)
        assert mistake["frames"] == [
            {"file": __file__, "line": line, "function": "bug", "source": source.strip(), "own": True, "cause": ""}
        ]
        assert mistake["times"] == 1


@pytest.mark.parametrize(
    ("function", "kind", "frames"),
    [
        ("calls_a_bug", "KeyError", ["bug"]),
        ("two_bugs", "KeyError", ["bug"]),
        ("wrong_call", "UnknownFunction", ["wrong_call"]),
        ("sleeps", "NondeterministicFunction", ["sleeps"]),
        ("draws_from_nothing", "RuntimeError", ["draws_from_nothing"]),
        ("outside", "RuntimeError", ["falls"]),
        ("forgets", "ForgottenAwait", ["forgets"]),
        ("unsendable", "UnsupportedValue", ["unsendable"]),
        ("calls_with_a_word", "BadArguments", ["put"]),
    ],
)
async def test_the_line_of(function: str, kind: str, frames: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async with styx.embedded(app) as client:
        await client.request("account", "alice", function)
        [mistake] = kept(client)
        assert mistake["type"] == kind
        assert [frame["function"] for frame in mistake["frames"] if frame["own"]] == frames
        assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("raises_unnamed", "<unnamed exception>"),
        ("raises_untraced", "Untraced"),
        ("awaits_unnamed", "NondeterministicFunction"),
    ],
)
async def test_classes_that_cannot_be_looked_at_cost_their_transaction_only(function: str, kind: str) -> None:
    async with styx.embedded(app) as client:
        reply = await client.request("account", "alice", function)
        assert reply.error is not None
        assert reply.error.type == kind
        assert await client.call("account", "alice", "put", 1) is None


async def test_what_is_meant_or_the_clients_fault_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async with styx.embedded(app) as client:
        assert (await client.request("account", "alice", "pay", 1)).error is not None
        assert (await client.request("account", "alice", "pay", "much")).error is not None
        assert (await client.request("account", "alice", "nothing")).error is not None
        client.engine.reports.notes.all_aborts = True
        assert (await client.request("account", "alice", "pay", 1)).error is not None
        [mistake] = kept(client)
        assert mistake["type"] == "Poor"


async def test_once_though_it_ran_several_times(caplog: pytest.LogCaptureFixture) -> None:
    """Ten at once on one entity: all but the first are run again, and the last five fail for good only there."""
    caplog.set_level(logging.DEBUG, "styx.functions")
    async with styx.embedded(app) as client:
        await client.call("account", "alice", "put", 5)
        replies = await asyncio.gather(*(client.request("account", "alice", "broken_when_empty") for _ in range(10)))
        assert [reply.error is None for reply in replies] == [True] * 5 + [False] * 5
        [mistake] = kept(client)
        assert (mistake["type"], mistake["times"]) == ("ZeroDivisionError", 5)
        said = [record.getMessage() for record in caplog.records if record.name == "styx.functions"]
        assert said == [f"account/alice.broken_when_empty: takes one left={10 // n}" for n in (5, 4, 3, 2, 1)]


async def test_lines_of_an_abort_are_marked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "styx.functions")
    async with styx.embedded(app) as client:
        await client.request("account", "alice", "pay", 1)
        [record] = caplog.records
        assert record.getMessage() == "account/alice.pay: sees balance=0 (aborted)"


async def test_a_flood_is_counted(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.reports.function_reports.REFILL_SECONDS", float("inf"))
    many = CAPTURES_MAX + 200
    async with styx.embedded(app) as client:
        reports = client.engine.reports
        reports._allowance._clock = lambda: 0.0
        due: list[Any] = []
        reports._later = lambda seconds, callback: due.append(callback)
        await asyncio.gather(*(client.request("account", f"a{n}", "bug") for n in range(many)))
        [mistake] = kept(client)
        assert mistake["times"] == CAPTURES_MAX
        assert reports.mistakes.total == many
        assert len(caplog.records) == SHOWN_PER_SECOND_MAX
        [summary] = due
        summary()
        left_out = many - SHOWN_PER_SECOND_MAX
        assert caplog.records[-1].getMessage().startswith(f"{left_out} further mistakes")


async def test_where_somebody_looks_on_all_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    async with styx.embedded(app) as client:
        reports = client.engine.reports
        reports.show_all()
        reports._allowance._clock = lambda: 0.0
        many = CAPTURES_MAX
        await asyncio.gather(*(client.request("account", f"a{n}", "bug") for n in range(many)))
        assert len(caplog.records) == many


async def test_a_mistake_of_no_line_has_that_of_its_function(caplog: pytest.LogCaptureFixture) -> None:
    async with styx.embedded(app) as client:
        await client.request("account", "alice", "forgets")
        [record] = caplog.records
        assert record.getMessage().splitlines()[-1].strip() == "async def forgets(ctx: Context) -> None:"


async def test_replays_do_not_repeat_what_is_known_to_be_told(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.INFO, "styx.functions")
    async with styx.embedded(app, tmp_path) as client:
        await client.request("account", "alice", "bug")
        await client.call("account", "alice", "put", 5)
        await client.call("account", "alice", "pay", 5)
        await client.engine.flushed()
        assert len(caplog.records) == 2
        client.crash()
    async with styx.embedded(app, tmp_path) as client:
        assert client.entity("account", "alice") == 0
        assert len(caplog.records) == 2


async def test_an_exception_is_not_kept_alive() -> None:
    gone: list[ref[Exception]] = []
    owner = Operator("owner")

    class Lost(Exception):
        def __init__(self) -> None:
            gone.append(ref(self))

    @owner.register
    async def fails(ctx: Context) -> None:
        raise Lost

    async with styx.embedded(App("x", [owner])) as client:
        client.engine.reports.notes.all_aborts = True
        gc.collect()
        gc.disable()
        try:
            await client.request("owner", "a", "fails")
            assert [found() for found in gone] == [None]
        finally:
            gc.enable()
