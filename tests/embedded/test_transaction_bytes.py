"""One transaction's arguments and results have a limit together: over it a clear abort, the same in every execution."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.large.run import CASES
from styx import App, Context, Limits, Operator
from styx.errors import TransactionAborted
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio

KB = 1_000
LIMITS = Limits(invocations_max=100, transaction_bytes_max=100 * KB)
"""A call counts as at least 1 kB."""

holder = Operator("holder")


@holder.register
async def keep(ctx: Context, text: str) -> None:
    await ctx.put(len(text))


@holder.register
async def give(ctx: Context, size: int) -> str:
    return "x" * size


@holder.register
async def send(ctx: Context, calls: int, size: int) -> None:
    for number in range(calls):
        ctx.call_async(holder, keep, f"{ctx.key}-{number}", ("x" * size,))


@holder.register
async def hand(ctx: Context, calls: int, size: int) -> None:
    for number in range(calls):
        await ctx.call(holder, keep, f"{ctx.key}-{number}", ("x" * size,))


@holder.register
async def collect(ctx: Context, calls: int, size: int) -> int:
    return sum([len(await ctx.call(holder, give, f"{ctx.key}-{n}", (size,))) for n in range(calls)])


@holder.register
async def branches(ctx: Context, width: int, function: str, calls: int, size: int) -> None:
    for number in range(width):
        ctx.call_async(holder, function, f"{ctx.key}-{number}", (calls, size))


app = App("holders", [holder])


@pytest.mark.parametrize("function", ["send", "hand", "collect"])
async def test_all_of_it_is_counted_exactly(function: str, tmp_path: Path) -> None:
    """With 3.5 kB each a call counts as four: 24 of them and the root are 97; 25 would be 101."""
    async with embedded_cluster(app, tmp_path / "data", limits=LIMITS) as cluster:
        await cluster.call("holder", "a", function, 24, 3_500)
        for attempt in ("b", "c"):
            with pytest.raises(TransactionAborted, match=r"more than 100000 bytes of arguments and results \(Limits\."):
                await cluster.call("holder", attempt, function, 25, 3_500)
            await cluster.crash_and_recover()
        assert not [key for _, key in cluster.state() if key.startswith(("b", "c"))], "nothing of it is left"


@pytest.mark.parametrize("function", ["send", "hand", "collect"])
async def test_branches_that_run_at_once_are_counted_together(function: str, tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path / "data", limits=LIMITS) as cluster:
        await cluster.call("holder", "a", "branches", 4, function, 5, 3_500)
        with pytest.raises(TransactionAborted, match="more than 100000 bytes of arguments and results"):
            await cluster.call("holder", "b", "branches", 50, function, 24, 3_500)
        await cluster.crash_and_recover()


def test_two_hundred_calls_with_a_megabyte_each_are_within_the_default() -> None:
    calls, size = CASES["arguments"].arguments
    limits = Limits()
    assert 1 + calls * (1 + (size + 10) // limits.call_bytes) <= limits.invocations_max
