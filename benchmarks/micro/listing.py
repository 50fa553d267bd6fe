"""`python -m benchmarks.micro.listing [ENTITIES]`: what a page of a listing costs an embedded engine with many entities
on four slots, in microseconds of processor time, and how long one question holds it up.

The first listing puts the keys in order, a piece with each question; a page costs what it gives from then on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median
from time import process_time
from typing import Any, Final

import styx
from styx import App, Operator
from styx.client.embedded import EmbeddedClient
from styx.state.table import Table
from styx.worker.epoch_view import ORDERED_AT_ONCE

ENTITIES: Final = 1_000_000
SLOTS: Final = 4
PAGES: Final = 50

account = Operator("account", key_type=str)
app = App("bank", [account])


def key(number: int) -> str:
    return f"account {number:08}"


async def seconds(work: Callable[[], Awaitable[Any]]) -> float:
    """Its processor time."""
    begun = process_time()
    await work()
    return process_time() - begun


def longest_step(entities: int) -> tuple[float, float, int]:
    """Of putting the keys of one slot in order: seconds of the first question, of the longest one behind it, and how
    many there are.
    """
    table = Table({key(number * 7919 % entities): b"1" for number in range(entities)}, 0)
    steps: list[float] = []
    ready = False
    while not ready:
        begun = process_time()
        ready = table.order(ORDERED_AT_ONCE) is not None
        steps.append(process_time() - begun)
    return steps[0], max(steps[1:], default=0.0), len(steps)


async def pages(client: EmbeddedClient, entities: int, limit: int, values: bool) -> float:
    """Seconds of a page, the median."""
    cursors = [key(at * entities // PAGES) for at in range(PAGES)]
    given: dict[str, Any] = {"limit": limit, "values": values}
    return median([await seconds(partial(client.list, account, after=after, **given)) for after in cursors])


async def main(entities: int) -> None:
    first, longest, steps = longest_step(entities // SLOTS)
    print(f"{entities:,} entities on {SLOTS} slots; processor time")
    print(f"  keys of a slot: {steps} questions, the first {first * 1e3:.1f} ms, others to {longest * 1e3:.1f} ms")
    async with styx.embedded(app, n_slots=SLOTS) as client:
        await client.load(account, [(key(number), {"balance": number}) for number in range(entities)])
        print(f"  first page: {await seconds(lambda: client.list(account)) * 1e3:.0f} ms")
        for limit in (100, 1_000):
            with_values = await pages(client, entities, limit, True)
            alone = await pages(client, entities, limit, False)
            print(f"  page of {limit:,}: {with_values * 1e6:,.0f} µs with values, {alone * 1e6:,.0f} µs keys alone")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ENTITIES))
