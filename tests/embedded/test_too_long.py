"""Functions that never end, in the embedded engine: each is ended, its outcome is recorded, and the others go on."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import styx
from styx import App, Context, Limits, Operator
from styx.client.embedded import EmbeddedClient
from styx.messages import Reply
from styx.reports.mistakes import read_page

pytestmark = [
    pytest.mark.anyio,
    # A finalizer that is ended has nobody to raise to.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LIMITS = Limits(function_seconds_max=0.2)

entity = Operator("entity")
started: list[str] = []
slower: list[bool] = []


class Spinning(Exception):
    def __str__(self) -> str:  # noqa: PLE0307 - it never does
        while True:
            pass


class SpinningArgument:
    def __init__(self, value: int) -> None:
        self.value = value


@entity.register
async def add(ctx: Context) -> int:
    total: int = await ctx.get(0) + 1
    await ctx.put(total)
    return total


@entity.register
async def spin(ctx: Context) -> None:
    started.append(ctx.key)
    await ctx.put(99)
    while True:
        pass


@entity.register
async def stubborn(ctx: Context) -> int:
    while True:
        try:
            while True:
                pass
        except BaseException:  # noqa: BLE001 - what a careless author writes
            continue


@entity.register
async def hide(ctx: Context) -> int:
    await ctx.put(99)
    try:
        while True:
            pass
    except BaseException:  # noqa: BLE001 - as above
        return 5


@entity.register
async def spin_in_an_exceptions_text(ctx: Context) -> None:
    raise Spinning


@entity.register
async def spin_behind_a_call(ctx: Context) -> None:
    await ctx.call(entity, add, f"{ctx.key} called")
    while True:
        pass


@entity.register
async def spin_below(ctx: Context) -> None:
    ctx.call_async(entity, add, f"{ctx.key} called")
    await ctx.call(entity, spin, f"{ctx.key} below")


@entity.register
async def spin_a_thousand_times(ctx: Context) -> None:
    for n in range(900):
        ctx.call_async(entity, spin, f"{ctx.key} {n}")


@entity.register
async def spin_deeper_and_deeper(ctx: Context, depth: int) -> None:
    """Branches that run earlier come later in serial order."""
    if depth < 0:
        for each in range(30, 0, -1):
            ctx.call_async(entity, spin_deeper_and_deeper, ctx.key, (each,))
    elif depth:
        ctx.call_async(entity, spin_deeper_and_deeper, ctx.key, (depth - 1,))
    else:
        started.append(ctx.key)
        while True:
            pass


@entity.register
async def spin_as_it_is_closed(ctx: Context) -> None:
    """Its callee raises, and it is given up while it waits."""
    try:
        await ctx.call(entity, "fail", ctx.key)
    finally:
        while True:
            pass


@entity.register
async def spin_twice(ctx: Context) -> None:
    """It waits although it was ended, and its clean-up does not end either."""
    started.append(ctx.key)
    try:
        try:
            while True:
                pass
        except BaseException:  # noqa: BLE001 - as above
            ctx.call_async(entity, add, ctx.key)
            await ctx.call(entity, add, ctx.key)
    finally:
        while True:
            pass


@entity.register
async def spin_as_the_lock_phase_closes_it(ctx: Context) -> int:
    total: int = await ctx.get(0) + 1
    await ctx.put(total)
    try:
        await ctx.call(entity, add, "other")
    except GeneratorExit:
        while True:
            pass
    return total


@entity.register
async def spin_and_call(ctx: Context) -> None:
    while True:
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        ctx.call_async(entity, add, ctx.key)


class EndsLate(dict[str, int]):
    def __del__(self) -> None:
        while True:
            pass


@entity.register
async def spin_when_its_result_is_freed(ctx: Context) -> dict[str, int]:
    return EndsLate(x=1)


@entity.register
async def fail(ctx: Context) -> None:
    raise LookupError("no such thing")


@entity.register
async def spin_when_told(ctx: Context) -> int:
    """As on a machine that is slower than it was."""
    while slower:
        pass
    return 1


@entity.register
async def spin_later(ctx: Context) -> int:
    """Ends on the state of an epoch's start, but not behind another transaction of the epoch."""
    total: int = await ctx.get(0)
    while total % 2:
        pass
    await ctx.put(total + 1)
    return total + 1


@entity.register
async def sleep(ctx: Context, seconds: float) -> str:
    time.sleep(seconds)  # noqa: ASYNC251 - that is what is wrong with it
    return "slept"


app = App("too_long", [entity])

ENDED = [
    "spin",
    "stubborn",
    "hide",
    "spin_in_an_exceptions_text",
    "spin_behind_a_call",
    "spin_below",
    "spin_and_call",
    "spin_when_its_result_is_freed",
]


def client(data_dir: Path | None = None, limits: Limits = LIMITS) -> EmbeddedClient:
    return styx.embedded(app, data_dir, limits=limits)


def too_long(reply: Reply) -> bool:
    return reply.error is not None and reply.error.type == "FunctionTooLong" and reply.phase == 0


@pytest.mark.parametrize("function", ENDED)
async def test_it_is_ended_and_the_next_request_is_served(function: str) -> None:
    async with client() as embedded:
        await embedded.call(entity, "bystander", add)
        bad = embedded.submit(entity, "a", function, timeout=300)
        good = embedded.submit(entity, "bystander", add, timeout=300)
        reply = await bad
        assert too_long(reply), reply
        assert reply.error is not None
        assert "test_too_long.py:" in reply.error.message
        assert "the limit is 0.2 s (Limits.function_seconds_max)" in reply.error.message
        assert (await good).result == 2
        assert embedded.state() == {("entity", "bystander"): 2}


@pytest.mark.parametrize("function", ENDED)
async def test_it_is_told_among_the_mistakes_once_with_its_line(
    function: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with client() as embedded:
        assert too_long(await embedded.submit(entity, "a", function, timeout=300))
        _, [mistake] = read_page(embedded.engine.reports.mistakes.page())
    assert (mistake.kind, mistake.type, mistake.times) == ("abort", "FunctionTooLong", 1)
    assert mistake.frames
    assert {place.file for place in mistake.frames} == {__file__}
    assert "among_the_mistakes" not in mistake.frames[0].function  # nothing of the application around the engine
    assert sum(record.name == "styx.mistakes" for record in caplog.records) == 1


async def test_what_is_given_up_is_ended_as_well_and_its_error_is_the_first() -> None:
    async with client() as embedded:
        reply = await embedded.submit(entity, "a", spin_as_it_is_closed, timeout=300)
        assert reply.error is not None
        assert reply.error.type == "LookupError"
        assert await embedded.call(entity, "b", add) == 1


async def test_one_whose_clean_up_is_ended_too_is_recorded(tmp_path: Path) -> None:
    async with client(tmp_path) as embedded:
        assert too_long(await embedded.submit(entity, "a", spin_twice, timeout=300))
        assert await embedded.call(entity, "b", add) == 1
        await embedded.engine.flushed()
        embedded.engine.crash()
    started.clear()
    async with client(tmp_path) as embedded:
        assert embedded.state() == {("entity", "b"): 1}
    assert not started


async def test_a_transaction_costs_its_limit_once_however_many_of_its_branches_do_not_end() -> None:
    async with client() as embedded:
        started.clear()
        assert too_long(await embedded.submit(entity, "a", spin_a_thousand_times, timeout=300))
        assert started == ["a 0"]


async def test_or_a_few_times_however_its_branches_are_nested() -> None:
    async with client() as embedded:
        started.clear()
        assert too_long(await embedded.submit(entity, "a", spin_deeper_and_deeper, -1, timeout=300))
        assert len(started) == 3


async def test_in_the_lock_phase_it_is_carried_and_ends_in_the_next_epoch() -> None:
    async with client() as embedded:
        replies = await asyncio.gather(
            *(embedded.submit(entity, "a", function, timeout=300) for function in (add, spin_later, add))
        )
        first, spun, last = replies
        assert (first.result, last.result) == (1, 2)
        # Carried behind both, it finds an even number.
        assert spun.result == 3
        assert spun.epoch > last.epoch


async def test_what_the_lock_phase_gives_up_and_runs_again_is_not_carried() -> None:
    async with client() as embedded:
        functions = (add, spin_as_the_lock_phase_closes_it)
        replies = await asyncio.gather(*(embedded.submit(entity, "a", each, timeout=300) for each in functions))
        assert [(reply.result, reply.phase) for reply in replies] == [(1, 1), (2, 2)]
        assert replies[0].epoch == replies[1].epoch


async def test_what_only_c_holds_up_ends_when_it_returns() -> None:
    async with client() as embedded:
        reply = await embedded.submit(entity, "a", sleep, 0.6, timeout=300)
        assert too_long(reply)
    async with client(limits=Limits(function_seconds_max=60)) as embedded:
        assert await embedded.call(entity, "a", sleep, 0.6) == "slept"


async def test_no_replay_runs_it_again(tmp_path: Path) -> None:
    async with client(tmp_path) as embedded:
        before: list[Any] = [
            await embedded.submit(entity, f"k{n}", spin if n % 3 == 0 else add, timeout=300) for n in range(7)
        ]
        assert [n for n, reply in enumerate(before) if too_long(reply)] == [0, 3, 6]
        await embedded.engine.flushed()
        state = embedded.state()
        embedded.engine.crash()
    started.clear()
    async with client(tmp_path) as embedded:
        assert embedded.state() == state
        assert await embedded.call(entity, "k1", add) == 2
    assert not started


async def test_no_replay_records_that_what_was_answered_does_not_end(tmp_path: Path) -> None:
    async with client(tmp_path) as embedded:
        assert await embedded.call(entity, "a", spin_when_told) == 1
        await embedded.engine.flushed()
        embedded.engine.crash()
    slower.append(True)
    try:
        with pytest.raises(styx.EngineFailed, match="does not end"):
            async with client(tmp_path):
                pass
    finally:
        slower.clear()
    async with client(tmp_path) as embedded:
        assert await embedded.call(entity, "b", add) == 1


async def test_one_that_was_crashed_amid_it_is_ended_in_the_replay(tmp_path: Path) -> None:
    async with client(tmp_path, Limits(function_seconds_max=600)) as embedded:
        await embedded.call(entity, "b", add)
        await embedded.engine.flushed()
        state = embedded.state()
        # As it stands in the log when the process is killed while the function runs.
        from styx.log.base import Stream
        from styx.messages import Request, encode_request

        slot = entity.slot_of("a", embedded.engine.n_slots)
        record = encode_request(Request("r", "entity", "a", "spin", b"\x90"))
        embedded.engine.log.append(Stream.REQUESTS, slot, 1, record)
        embedded.engine.log.flush()
        await embedded.engine.flushed()
        embedded.engine.crash()
    started.clear()
    async with client(tmp_path) as embedded:
        assert await embedded.call(entity, "b", add, timeout=300) == 2
        assert state == {("entity", "b"): 1}
    assert started == ["a"]


@pytest.mark.slow
async def test_a_thousand_requests_of_which_fifty_never_end_with_crashes_between(tmp_path: Path) -> None:
    """What is not answered when the engine crashes is sent again, with its idempotency key."""
    rng = Random(5)
    functions: list[Any] = [spin] * 25 + [spin_below] * 25 + [add] * 950
    rng.shuffle(functions)
    drawn = [(f"k{n}", function) for n, function in enumerate(functions)]
    outcomes: dict[str, tuple[Any, Any]] = {}
    started.clear()

    async def send(embedded: EmbeddedClient, key: str, function: Any) -> None:
        try:
            reply = await embedded.submit(entity, key, function, timeout=600, idempotency_key=key)
        except (styx.OutcomeUnknown, styx.NotSent):
            return
        outcomes[key] = (reply.result, None if reply.error is None else reply.error.type)

    crashes = 0
    while len(outcomes) < len(drawn):
        async with client(tmp_path) as embedded:
            left = [each for each in drawn if each[0] not in outcomes]
            sending = [asyncio.ensure_future(send(embedded, *each)) for each in left[:200]]
            if crashes < 4:
                await asyncio.wait(sending, timeout=0.5 + rng.random())
                embedded.engine.crash()
                crashes += 1
            await asyncio.gather(*sending)
    assert crashes == 4
    expected = {key: (1, None) if function is add else (None, "FunctionTooLong") for key, function in drawn}
    assert outcomes == expected
    before = len(started)
    async with client(tmp_path) as embedded:
        assert len(embedded.state()) == 950
    assert len(started) == before
