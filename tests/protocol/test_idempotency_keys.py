"""Which idempotency key is forgotten does not depend on whether a snapshot lies between."""

from __future__ import annotations

from functools import partial

from styx import App, Context, Operator
from styx.coordinator.events import SnapshotWanted
from styx.model.limits import Limits
from tests.protocol.deployment import Deployment

entity = Operator("entity")


@entity.register
async def count(ctx: Context, fail: bool) -> int:
    number: int = await ctx.get(0) + 1
    if fail:
        raise ValueError(f"at {number}")
    await ctx.put(number)
    return number


def test_a_replay_from_a_snapshot_forgets_the_same_key_as_the_first_run_did() -> None:
    deployment = Deployment(App("forgetful", [entity]), workers=1, slots=1, limits=Limits(idempotency_keys_max=2))
    send = partial(deployment.send, "entity")
    # One epoch: the lower TID commits (phase 1), the higher aborts (phase 0), so it comes first in serial order.
    deployment.send_together(
        lambda: (send("a", "count", False, idempotency_key="A"), send("b", "count", True, idempotency_key="B"))
    )
    assert [reply.phase for reply in sorted(deployment.replies, key=lambda reply: reply.tid)] == [1, 0]
    deployment.to_coordinator(SnapshotWanted())
    deployment.run()
    assert deployment.coordinator.snapshots_completed == 1
    send("c", "count", False, idempotency_key="C")
    deployment.run()
    # B is the oldest and forgotten: this runs again, A's is still remembered.
    send("b", "count", False, idempotency_key="B")
    deployment.run()
    before = deployment.remembered()
    state = deployment.state()
    deployment.restart()
    assert deployment.remembered() == before
    assert deployment.state() == state
