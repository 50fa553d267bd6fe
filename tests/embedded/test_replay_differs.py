"""A replay that would contradict a reply: the engine says which, and starts only if it is told to accept that."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import App, Context, Operator
from styx.errors import EngineFailed
from styx.testing import embedded_cluster
from styx.worker.given_replies import ReplayDiffers

pytestmark = pytest.mark.anyio


def draws() -> App:
    """Functions that use what is another one in each run."""
    ticket = Operator("ticket")
    numbers = itertools.count(1)

    @ticket.register
    async def draw(ctx: Context) -> int:
        number = next(numbers)
        await ctx.put(number)
        return number

    @ticket.register
    async def fail(ctx: Context) -> None:
        raise ValueError(f"number {next(numbers)}")

    @ticket.register
    async def sometimes(ctx: Context) -> int:
        if next(numbers) % 2:
            raise ValueError("odd")
        return 0

    @ticket.register
    async def add(ctx: Context, amount: int) -> int:
        await ctx.put(await ctx.get(0) + amount)
        return await ctx.get()  # type: ignore[no-any-return]

    return App("tickets", [ticket])


async def _answered(app: App, directory: Path, *calls: tuple[str, str, Any]) -> None:
    client = styx.embedded(app, directory)
    async with client:
        for key, function, arguments in calls:
            await client.request("ticket", key, function, *arguments)
        assert await client.engine.flushed()
        client.crash()


async def test_it_does_not_start_and_says_why(tmp_path: Path) -> None:
    app = draws()
    await _answered(app, tmp_path, ("b", "add", [7]), ("a", "draw", []))
    for number in (2, 3):
        with pytest.raises(ReplayDiffers) as refused:
            async with styx.embedded(app, tmp_path):
                pass
        assert isinstance(refused.value, EngineFailed)
        text = str(refused.value)
        assert (
            f"(ticket['a'], function draw) gives {number} but 1 was answered: the function is not deterministic" in text
        )
        assert "Nothing is lost" in text
        assert "accept_changed_replay=True (styx dev --accept-changed-replay)" in text


async def test_unless_that_is_accepted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = draws()
    await _answered(app, tmp_path, ("b", "add", [7]), ("a", "draw", []))
    with caplog.at_level(logging.WARNING, "styx.embedded"):
        async with styx.embedded(app, tmp_path, accept_changed_replay=True) as client:
            assert client.state() == {("ticket", "a"): 2, ("ticket", "b"): 7}
    assert "gives 2 but 1 was answered; what was answered stands in the log" in caplog.text
    caplog.clear()
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == {("ticket", "a"): 2, ("ticket", "b"): 7}
    assert caplog.text == ""


async def test_an_abort_that_is_a_result_now(tmp_path: Path) -> None:
    app = draws()
    await _answered(app, tmp_path, ("a", "sometimes", []))
    with pytest.raises(ReplayDiffers, match=r"function sometimes\) gives 0 but 'ValueError: odd' was answered"):
        async with styx.embedded(app, tmp_path):
            pass


async def test_other_words_of_an_abort_are_told_of_and_cost_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An address in a message must not make a directory unusable: neither of the two has done anything."""
    app = draws()
    await _answered(app, tmp_path, ("a", "fail", []), ("b", "add", [7]))
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == {("ticket", "b"): 7}
    assert "gives 'ValueError: number 2' but 'ValueError: number 1' was answered" in caplog.text
    assert "the same error in other words, which is harmless" in caplog.text
    assert "have changed" not in caplog.text


async def test_many_differences_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = draws()
    await _answered(app, tmp_path, *[(f"k{number}", "draw", []) for number in range(25)])
    async with styx.embedded(app, tmp_path, accept_changed_replay=True) as client:
        assert client.engine.replay.found == 25
    told = [record for record in caplog.records if "was answered" in record.getMessage()]
    assert len(told) == 10
    assert told[-1].getMessage().endswith("further ones of this function are counted only")


async def test_a_reply_that_was_never_in_the_log_cannot_be_compared(tmp_path: Path) -> None:
    """What a caller was given right before a power cut may not stand there: the replay gives it then."""
    app = draws()
    client = styx.embedded(app, tmp_path)
    async with client:
        await client.call("ticket", "a", "add", 5)
        client.crash()
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == {("ticket", "a"): 5}


async def test_repetitions_and_idempotency_keys_are_no_difference(tmp_path: Path) -> None:
    async with embedded_cluster(draws(), tmp_path) as cluster:
        for _ in range(3):
            assert await cluster.call("ticket", "a", "add", 5, idempotency_key="once") == 5
        await cluster.engine.flushed()
        await cluster.crash_and_recover()
        assert await cluster.call("ticket", "a", "add", 5, idempotency_key="once") == 5
        assert cluster.engine.replay.found == 0


async def test_a_repetition_gets_what_was_answered(tmp_path: Path) -> None:
    """Its client was told 1, and is never told anything else; the state is the replay's."""
    app = draws()
    async with styx.embedded(app, tmp_path) as client:
        assert await client.call("ticket", "a", "draw", idempotency_key="once") == 1
        assert await client.engine.flushed()
        client.crash()
    for state in (2, 3):
        async with styx.embedded(app, tmp_path, accept_changed_replay=True) as client:
            assert client.state()["ticket", "a"] == state
            assert await client.call("ticket", "a", "draw", idempotency_key="once") == 1
            assert await client.engine.flushed()
            client.crash()


async def test_an_outside_call_that_is_not_made_in_the_replay(tmp_path: Path) -> None:
    """It is told of, and is no fault of the engine's."""
    ticket = Operator("ticket")
    first = [True]

    @ticket.register
    async def pay(ctx: Context) -> int:
        if first[0]:
            paid: int = await ctx.call_external(_paid, 5)
            return paid
        return 0

    app = App("tickets", [ticket])
    await _answered(app, tmp_path, ("a", "pay", []))
    first[0] = False
    with pytest.raises(ReplayDiffers, match=r"\(ticket\['a'\], function pay\) gives 0 but 6 was answered"):
        async with styx.embedded(app, tmp_path):
            pass
    async with styx.embedded(app, tmp_path, accept_changed_replay=True) as client:
        assert await client.call("ticket", "b", "pay") == 0
        assert client.engine.replay.found == 2


def _paid(amount: int) -> int:
    return amount + 1


async def test_in_memory_nothing_is_looked_at() -> None:
    async with styx.embedded(draws()) as client:
        assert await client.call("ticket", "a", "draw") == 1
        assert client.engine.coordinator.app_version == 0
