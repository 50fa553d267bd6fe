"""An asynchronous generator that a function drops ends inside of that function: in its transaction and its limit."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import pytest

import styx
from styx import App, Context, Limits, Operator
from styx.errors import TransactionAborted
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio


async def counting(ctx: Context, endless: bool) -> AsyncIterator[int]:
    try:
        yield 1
    finally:
        while endless:
            pass
        await ctx.put(await ctx.get(0) + 1)


entity = Operator("entity")


@entity.register
async def take_one(ctx: Context, endless: bool) -> None:
    async for _ in counting(ctx, endless):
        break


app = App("generators", [entity])


async def test_its_end_is_part_of_the_transaction() -> None:
    before = sys.get_asyncgen_hooks()
    async with embedded_cluster(app) as cluster:
        for total in (1, 2):
            await cluster.call("entity", "a", "take_one", False)
            assert cluster.entity("entity", "a") == total
        assert sys.get_asyncgen_hooks() == before, "the event loop's own stay"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python tells of what is ended in it
async def test_one_that_never_ends_is_ended() -> None:
    async with styx.embedded(app, limits=Limits(function_seconds_max=0.3)) as cluster:
        with pytest.raises(TransactionAborted) as aborted:
            await cluster.call("entity", "a", "take_one", True)
        assert aborted.value.type == "FunctionTooLong"
        await cluster.call("entity", "a", "take_one", False)
