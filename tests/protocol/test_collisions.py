"""A collision reaches the root before its last share, whatever the order of arrival across connections."""

from __future__ import annotations

from styx import App, Context, Operator
from tests.protocol.deployment import Deployment, first, place

SLOTS = 4
ROOT, MEETING, BELOW = ([place(slot, SLOTS), 0] for slot in range(3))

entity = Operator("entity", key_type=(int, int), partition_key=first)


@entity.register
async def two_branches(ctx: Context) -> None:
    ctx.call_async(entity, meet, MEETING, (1,))
    ctx.call_async(entity, meet, MEETING, (2,))


@entity.register
async def meet(ctx: Context, n: int) -> None:
    await ctx.put(await ctx.get(0) * 10 + n)
    ctx.call_async(entity, leaf, [BELOW[0], n])


@entity.register
async def leaf(ctx: Context) -> None:
    await ctx.put(True)


def test_branches_that_met_and_called_on_collide_although_their_worker_is_slow_to_tell_the_root() -> None:
    deployment = Deployment(App("meeting", [entity]), workers=4, slots=SLOTS)
    meeting_to_root = (1, 0)
    deployment.held.add(meeting_to_root)
    deployment.send("entity", (ROOT[0], 0), "two_branches")
    deployment.run()
    deployment.held.clear()
    deployment.run()
    assert deployment.reply(0).phase == 2
    deployment.check()
