"""Random requests for `proof.cluster.timed_app`, and bursts of calls that are due at one moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final

from proof.cluster.load import Planned, SteadyLoad
from proof.cluster.timed_app import BURST_EACH

ACCOUNTS: Final = 40
GIVERS: Final = 24
LIVING: Final = 30
"""Sessions, and products of each shop."""
SHOPS: Final = 4
NAMES: Final = ("a", "b", "c")
HOPS_MAX: Final = 12
"""Calls of a graph of calls."""
HOUR_US: Final = 3_600_000_000
BURST_GIVERS: Final = 1_000
"""The keys of givers of bursts begin here."""
AT_ONCE: Final = 40
"""Requests of a burst that are under way together."""
_SHARES: Final = (
    ("transfer", 28),
    ("hop", 16),
    ("look", 14),
    ("commit", 8),
    ("shy", 3),
    ("failing", 1),
    ("timers", 8),
    ("named", 7),
    ("withdraw", 5),
    ("visit", 5),
    ("offer", 5),
)


def timed_requests(rng: Random, ahead_us: Callable[[], int]) -> Callable[[], Planned]:
    """Makes random requests of all kinds. `ahead_us` says by how much the workers' clocks are wrong: what is given for
    later is due some seconds later by them, or an hour after that.
    """
    kinds, shares = zip(*_SHARES, strict=True)
    number = 0

    def make() -> Planned:
        nonlocal number
        number += 1
        kind = rng.choices(kinds, shares)[0]
        return _request(rng, kind, f"{kind}-{number}", max(0, ahead_us()))

    return make


def _request(rng: Random, kind: str, name: str, ahead_us: int) -> Planned:
    one = rng.randrange(ACCOUNTS)
    giver = rng.randrange(GIVERS)
    delay_us = ahead_us + rng.randrange(50_000, 5_000_000) + (HOUR_US if rng.random() < 0.2 else 0)
    if kind == "transfer":
        other = (one + rng.randrange(1, ACCOUNTS)) % ACCOUNTS
        return Planned("account", one, "transfer", (other, rng.randrange(100), name, rng.random() < 0.1))
    if kind == "hop":
        return Planned("account", one, "hop", (name, _graph(rng, [HOPS_MAX])))
    if kind == "look":
        return Planned("account", one, "look", (rng.sample(range(ACCOUNTS), rng.randrange(8)),))
    if kind == "timers":
        return Planned("giver", giver, "give_timers", (rng.randrange(1, 4), delay_us))
    if kind == "named":
        return Planned("giver", giver, "give_named", (rng.choice(NAMES), delay_us))
    if kind == "withdraw":
        return Planned("giver", giver, "withdraw", (rng.choice(NAMES),))
    if kind == "visit":
        return Planned("session", rng.randrange(LIVING), "visit", ())
    if kind == "offer":
        product = rng.randrange(LIVING)
        return Planned("shop", product % SHOPS, "offer", (product,))
    return Planned("giver", giver, "give", (kind, rng.randrange(1, 4) if kind == "commit" else 1))


def _graph(rng: Random, left: list[int]) -> list[list[Any]]:
    children: list[list[Any]] = []
    while left[0] > 0 and rng.random() < 0.6:
        left[0] -= 1
        children.append([rng.randrange(ACCOUNTS), rng.random() < 0.5, _graph(rng, left)])
    return children


async def give_burst(load: SteadyLoad, calls: int, at_us: int) -> None:
    """Has this many calls given that are due together, at a moment that is far away."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            each = min(BURST_EACH, calls - number * BURST_EACH)
            await load.send(Planned("giver", BURST_GIVERS + number, "give_burst", (each, at_us)))

    await asyncio.gather(*[one(number) for number in range(-(-calls // BURST_EACH))])
