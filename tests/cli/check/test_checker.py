"""What another run of the same transactions says of them."""

import asyncio
import random
import time
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

import styx
from proof.chaos_app import app as chaos_app
from proof.random_requests import CONTENDED, MIXED, random_request
from styx import App, Context, Operator
from styx.cli.check.checker import Checker
from styx.cli.check.feed import CheckWatch, Feed
from styx.cli.check.messages import Difference, Epoch, State, to_checker
from styx.client.embedded import EmbeddedClient
from styx.errors import InTransactionError, RequestRejected
from styx.model.limits import Limits
from tests.placed import placed

pytestmark = pytest.mark.anyio
LIMITS = Limits(invocations_max=300, operations_max=2_000, call_depth_max=64, value_bytes_max=20_000)
account = Operator("account")
numbers = count(1)
remembered: dict[str, int] = {}


def outside(amount: int) -> int:
    return amount + next(numbers)


def falls(amount: int) -> int:
    raise OSError(f"no {amount} today")


@account.register
async def credit(ctx: Context, amount: int) -> int:
    balance = await ctx.get(0) + amount
    await ctx.put(balance)
    ctx.log("credits", balance=balance)
    return int(balance)


class Note(msgspec.Struct):
    number: int
    text: str = ""


notes = account.table("notes", Note, key="number")


@account.register
async def notes_down(ctx: Context) -> None:
    await ctx.rows(notes).put(Note(1, str(next(numbers))))


@account.register
async def transfer(ctx: Context, to: str, amount: int) -> int:
    balance = await ctx.get(0)
    if balance < amount:
        raise ValueError(f"{ctx.key} has {balance}")
    await ctx.put(balance - amount)
    ctx.call_async(account, credit, to, (amount,))
    return int(await ctx.call(account, credit, to, (1,)))


@account.register
async def facts(ctx: Context) -> list[Any]:
    await ctx.delete()
    return [ctx.now(), ctx.uuid().hex, ctx.random().random(), ctx.transaction_id, ctx.partition]


@account.register
async def asks(ctx: Context, amount: int) -> int:
    got = await ctx.call_external(outside, amount)
    await ctx.put(got)
    return int(got)


@account.register
async def asks_in_vain(ctx: Context) -> None:
    await ctx.call_external(falls, 3)


@account.register
async def counts(ctx: Context) -> int:
    return next(numbers)


@account.register
async def keeps(ctx: Context) -> None:
    await ctx.put(random.random())


@account.register
async def caches(ctx: Context) -> int:
    """Right the first time, in each process."""
    if ctx.key not in remembered:
        remembered[ctx.key] = await ctx.get(0)
        await ctx.put(1)
    return remembered[ctx.key]


@account.register
async def clocks(ctx: Context) -> None:
    raise ValueError(str(time.perf_counter_ns()))


@account.register
async def asks_differently(ctx: Context) -> int:
    return int(await ctx.call_external(outside, random.randrange(10**9)))


@account.register
async def calls(ctx: Context, function: str) -> None:
    ctx.call_async(account, function, "below")


app = App("bank", [account])


def begin(client: EmbeddedClient) -> Feed:
    feed = Feed()
    watch = client.engine.watch
    assert isinstance(watch, CheckWatch)
    watch.begin(feed, client.engine.worker)
    return feed


def engine(data_dir: Path | None = None) -> EmbeddedClient:
    client = styx.embedded(app, data_dir)
    client.engine.watch = CheckWatch()
    return client


def differences(client: EmbeddedClient, feed: Feed) -> list[Difference]:
    """What a checker says of all that was fed."""
    checker = Checker(client.engine.app, client.engine.limits, client.engine.n_slots)
    found: list[Difference] = []
    while feed.waiting:
        (data,) = feed.take(0) or [b""]
        message = to_checker(data)
        if isinstance(message, State):
            checker.state(message)
        else:
            assert isinstance(message, Epoch)
            difference = checker.epoch(message)
            found += [] if difference is None else [difference]
        feed.checked()
    assert checker._reference.state == client.engine.encoded_state()
    return found


async def everything(client: EmbeddedClient) -> None:
    """Whatever an app may do, much of it at once."""
    await client.load("account", [(f"k{n}", 100) for n in range(20)])
    requests = [client.request("account", f"k{n % 3}", "transfer", f"k{n % 5}", n % 60) for n in range(300)]
    requests += [client.request("account", f"k{n}", "facts") for n in range(5, 10)]
    requests += [client.request("account", f"e{n}", "asks", n) for n in range(5)]
    requests += [client.request("account", f"e{n}", "asks_in_vain") for n in range(3)]
    requests += [client.request("account", "same", "credit", 1, idempotency_key="once") for _ in range(3)]
    requests += [client.request("account", "k1", "transfer", "x"), client.request("account", 7, "credit", 1)]
    await asyncio.gather(*requests)
    with pytest.raises(styx.LoadFailed):
        await client.load("account", [("k1", 5)])
    await client.load("account", [("k1", 5), ("new", 6)], replace=True)


async def test_a_deterministic_app_shows_nothing(tmp_path: Path) -> None:
    async with engine(tmp_path) as client:
        feed = begin(client)
        await everything(client)
        assert differences(client, feed) == []
        await client.engine.flushed()
        client.crash()
    async with engine(tmp_path) as client:
        feed = begin(client)
        await everything_again(client)
        assert differences(client, feed) == []


async def everything_again(client: EmbeddedClient) -> None:
    """On what was recovered."""
    await asyncio.gather(*(client.request("account", f"k{n % 3}", "transfer", "k4", 1) for n in range(50)))
    await client.request("account", "same", "credit", 1, idempotency_key="once")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("counts", "and when it was run again, alone, it gave"),
        ("keeps", "in account['a'], and when it was run again, alone,"),
        ("notes_down", "it stored Note(number=1, text='"),
        ("clocks", "it raised ValueError: "),
        ("asks_differently", "an external function as it does not when it is run again"),
    ],
)
async def test_what_depends_on_something_else(function: str, words: str) -> None:
    async with engine() as client:
        feed = begin(client)
        await client.request("account", "a", function)
        await client.call("account", "b", "credit", 1)
        [found] = differences(client, feed)
        assert (found.operator, found.key, found.function) == ("account", "a", function)
        assert words in found.text
        code = account.function(function).func.__code__
        assert (found.file, found.line) == (__file__, code.co_firstlineno + 2)


async def test_a_function_below_is_told_with_the_request() -> None:
    async with engine() as client:
        feed = begin(client)
        await client.call("account", "a", "calls", "keeps")
        [found] = differences(client, feed)
        assert (found.key, found.function) == ("a", "calls")
        assert "account['below']" in found.text


async def test_what_is_remembered_between_runs() -> None:
    async with engine() as client:
        feed = begin(client)
        await client.call("account", "c", "caches")
        remembered.clear()
        [found] = differences(client, feed)
        assert found.function == "caches"


async def test_nothing_follows_from_a_difference() -> None:
    async with engine() as client:
        feed = begin(client)
        await client.call("account", "a", "keeps")
        for _ in range(3):
            await client.call("account", "a", "credit", 1)
        assert len(differences(client, feed)) == 1


async def test_it_begins_again_behind_what_was_left_out() -> None:
    async with engine() as client:
        feed = begin(client)
        await client.call("account", "a", "credit", 1)
        assert differences(client, feed) == []
        feed.fall_behind(float("-inf"))
        for _ in range(3):
            await client.call("account", "a", "credit", 1)
        assert feed.waiting == 3, "the state behind the first of them, and the two others"
        assert differences(client, feed) == []


@pytest.mark.parametrize("seed", range(3))
async def test_random_requests_show_nothing(seed: int) -> None:
    rng = random.Random(seed)
    client = styx.embedded(chaos_app, limits=LIMITS)
    client.engine.watch = CheckWatch()
    async with client:
        feed = begin(client)
        submitted = []
        for _ in range(150):
            request = random_request(rng, rng.choice((CONTENDED, MIXED)), "")
            try:
                submitted.append(client.engine.submit(placed(client.engine, request), 30))
            except (InTransactionError, RequestRejected):
                continue
        await asyncio.gather(*submitted)
        assert differences(client, feed) == []
