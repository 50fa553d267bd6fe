"""A request that makes too many calls, or many on one entity, costs what it may run and no more."""

from __future__ import annotations

from typing import Any

import pytest

from styx import App, Context, Operator
from styx.model.limits import Limits
from styx.native.compiled import transaction_limits
from styx.state.table import Table
from styx.worker.footprint import EntityCell, Footprint
from tests.protocol.deployment import Deployment

LIMITS = Limits(invocations_max=60, slice_invocations=1)

entity = Operator("entity")


@entity.register
async def endless(ctx: Context, fan_out: int) -> None:
    for number in range(fan_out):
        ctx.call_async(entity, endless, f"{number}", (fan_out,))


@entity.register
async def ask_all(ctx: Context, askers: int, fan_out: int) -> None:
    for number in range(askers):
        await ctx.call(entity, spread_out, f"{number}", (fan_out,))


@entity.register
async def spread_out(ctx: Context, fan_out: int) -> None:
    for number in range(fan_out):
        ctx.call_async(entity, leaf, f"{number}", (number,))


@entity.register
async def leaf(ctx: Context, number: int) -> None:
    if number == 7:
        raise ValueError("the eighth")


def _deployment() -> Deployment:
    return Deployment(App("branches", [entity]), workers=2, slots=4, limits=LIMITS)


def _held(deployment: Deployment) -> int:
    """Calls that wait to be run, whatever holds them."""
    return sum(
        len(worker.executor._ready)
        - worker.executor._started
        + sum(len(root.todo or ()) for root in worker.executor.roots.values())
        for worker in deployment.workers
    )


@pytest.mark.parametrize("fan_out", [2, 20, 59, 60, 61, 500])
def test_an_endless_recursion_holds_no_more_calls_than_may_run(fan_out: int) -> None:
    deployment = _deployment()
    deployment.send("entity", "root", "endless", fan_out)
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, _held(deployment))
        return False

    deployment.run(until=look)
    assert most <= LIMITS.invocations_max * deployment.slots
    deployment.check()


@pytest.mark.parametrize(("askers", "fan_out"), [(1, 58), (1, 59), (9, 5), (9, 6), (10, 5), (30, 50), (57, 60)])
def test_the_limit_is_exact_and_an_exception_before_it_comes_first(askers: int, fan_out: int) -> None:
    deployment = _deployment()
    deployment.send("entity", "root", "ask_all", askers, fan_out)
    deployment.run()
    deployment.check()


class CountedChain(bytes):
    """A chain that counts how often it is compared with another."""

    compared = 0

    def startswith(self, *prefix: Any) -> bool:
        CountedChain.compared += 1
        return super().startswith(*prefix)


def test_branches_that_have_collided_are_not_compared_any_more() -> None:
    CountedChain.compared = 0
    footprint = Footprint(App("cells", [entity]), transaction_limits(LIMITS), 1, 1, 0, 0, 0, False, False, None)
    cell = EntityCell(footprint, "hot", Table({"hot": b"start"}, -1).reader(-1))
    cell.write(CountedChain(b""), b"root")
    for number in range(1_000):
        branch = CountedChain(number.to_bytes(2, "big"))
        assert cell.read(branch) == b"root"
        cell.write(branch, b"%d" % number)
        assert cell.read(branch) == b"%d" % number
    assert footprint.collided
    assert CountedChain.compared < 100
