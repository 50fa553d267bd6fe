"""The first exception in serial order is the transaction's, also where a function hides what doomed it."""

from __future__ import annotations

from typing import Any

from styx import App, Context, Limits, Operator
from tests.protocol.deployment import Deployment, first, place

SLOTS = 2
HERE, THERE = ([place(slot, SLOTS), 0] for slot in range(2))

entity = Operator("entity", key_type=(int, int), partition_key=first)


@entity.register
async def mark_both(ctx: Context, other: list[int]) -> None:
    await ctx.put(1)
    ctx.call_async(entity, mark, other)


@entity.register
async def mark(ctx: Context) -> None:
    await ctx.put(1)


@entity.register
async def doomed_if_marked(ctx: Context, other: list[int]) -> Any:
    if await ctx.get(0):
        try:
            await ctx.put({1})
        except Exception:  # noqa: BLE001 - what a careless author writes
            pass
    return await ctx.call(entity, fails_if_marked, other)


@entity.register
async def fails_if_marked(ctx: Context) -> int:
    if await ctx.get(0):
        raise ValueError("callee")
    return 5


def test_a_function_that_hides_its_doom_ends_before_its_next_call_in_the_lock_phase_too() -> None:
    deployment = Deployment(App("hidden", [entity]), workers=1, slots=SLOTS)
    here = (HERE[0], 0)

    def in_conflict() -> None:
        deployment.send("entity", here, "mark_both", THERE)
        deployment.send("entity", here, "doomed_if_marked", THERE)

    deployment.send_together(in_conflict)
    error = deployment.reply(1).error
    assert deployment.reply(1).phase == 2
    assert error is not None
    assert error[1] == "UnsupportedValue"
    deployment.check()


# A call that is refused ----------------------------------------------------------------------------------------


@entity.register
async def two_branches(ctx: Context, other: list[int]) -> None:
    ctx.call_async(entity, calls_another, other)
    ctx.call_async(entity, calls_nobody, other)


@entity.register
async def calls_another(ctx: Context) -> None:
    ctx.call_async(entity, mark, ctx.key)


@entity.register
async def calls_nobody(ctx: Context) -> None:
    ctx.call_async("nobody", "nothing", ctx.key)


def test_a_call_that_is_refused_anyway_is_not_one_too_many() -> None:
    """Its branch cannot know how many calls stand before it in the other one."""
    deployment = Deployment(App("refused", [entity]), workers=1, slots=SLOTS, limits=Limits(invocations_max=4))
    deployment.send("entity", (HERE[0], 0), "two_branches", THERE)
    deployment.run()
    error = deployment.reply(0).error
    assert error is not None
    assert error[1] == "UnknownOperator"
    deployment.check()
