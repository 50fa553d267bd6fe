"""An engine whose calls are all far away sleeps: an hour of nothing, in which the loop's clock jumps from one timer to
the next, wakes it only to look at the wall clock.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import styx
from styx import App, Context, Operator
from styx.host.alarm import SLEEP_SECONDS_MAX
from styx.testing.patience import PATIENCE_SECONDS

HOUR_S = 3600.0
CALLS = 50

giver = Operator("giver", key_type=int)


@giver.register
async def give(ctx: Context) -> None:
    for _ in range(CALLS):
        ctx.after(timedelta(days=2), giver, nothing, ctx.key)


@giver.register
async def nothing(ctx: Context) -> None:
    pass


@giver.cron("0 3 1 1 *", key=1)
async def yearly(ctx: Context) -> None:
    await ctx.put(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """Once it `jumps`, its clock jumps to the next timer when nothing else is to be done. `wakes` counts how often it
    would have slept.
    """

    def __init__(self) -> None:
        super().__init__()
        self.jumps = False
        self.wakes = 0
        self.ahead_s = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]  # where every loop of this kind waits
        waits = selector.select

        def select(timeout: float | None = None) -> Any:
            if not timeout or not self.jumps:
                return waits(timeout)
            self.wakes += 1
            self.ahead_s += timeout
            return waits(0)

        selector.select = select

    def time(self) -> float:
        return super().time() + self.ahead_s


def test_an_hour_in_which_nothing_is_due() -> None:
    loop = JumpingLoop()

    async def main() -> None:
        async with styx.embedded(App("idle", [giver])) as client:
            await client.call(giver, 1, give)
            assert await client.engine.settled(PATIENCE_SECONDS)
            assert await client.engine.snapshot(PATIENCE_SECONDS)
            loop.jumps = True  # not before: the thread that stores knows nothing of this clock
            epoch, began_s = client.engine.coordinator.epoch, loop.time()
            await asyncio.sleep(HOUR_S)
            assert client.engine.coordinator.epoch == epoch
            assert client.engine.worker.given_for_later == CALLS + 1
            looks = HOUR_S / SLEEP_SECONDS_MAX
            assert looks - 1 <= loop.wakes <= looks + 10, "it wakes to look at the clock, and for nothing else"
            assert loop.time() - began_s >= HOUR_S

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
