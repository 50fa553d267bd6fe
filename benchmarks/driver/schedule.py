"""The times at which requests are due. They are fixed before the run and do not depend on replies (open loop). Pure.

Time is divided into ticks, and all requests of a tick are due at its beginning: a timer for each request would cost
more than sending it. Latencies count from that time, however late the client sends.

Of evenly spaced requests, number i is due at i / rate and client i mod n has it, so that few clients and many give the
same arrivals. With Poisson arrivals each client draws its own from an exponential distribution; their sum is again a
Poisson process.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks.driver.plan import LoadPlan


class Tick(NamedTuple):
    """`requests` are due `offset_s` seconds after the run's start."""

    offset_s: float
    requests: int


def ticks(plan: LoadPlan, client: int) -> Iterator[Tick]:
    """All ticks of client `client` that have a request. The same arguments give the same ticks."""
    total_s = plan.warm_up_s + plan.duration_s
    arrived = _even(plan, client) if plan.arrivals == "even" else _poisson(plan, client)
    # Clients take turns within a tick, so that they do not all send at once.
    shift_s = plan.tick_s * client / plan.clients
    before = 0
    for number in range(math.ceil(round(total_s / plan.tick_s, 6))):
        until = arrived(min((number + 1) * plan.tick_s, total_s))
        if until > before:
            yield Tick(number * plan.tick_s + shift_s, until - before)
            before = until


def _even(plan: LoadPlan, client: int) -> Callable[[float], int]:
    """How many requests this client has before an offset."""
    rate, clients = plan.rate, plan.clients

    def arrived(offset_s: float) -> int:
        # Round first: 1 + 2e-16 requests are one request.
        return max(math.ceil(round((offset_s * rate - client) / clients, 6)), 0)

    return arrived


def _poisson(plan: LoadPlan, client: int) -> Callable[[float], int]:
    rng = random.Random(f"{plan.seed} arrivals {client}")
    own_rate = plan.rate / plan.clients
    count, next_s = 0, rng.expovariate(own_rate)

    def arrived(offset_s: float) -> int:
        nonlocal count, next_s
        while next_s < offset_s:
            count += 1
            next_s += rng.expovariate(own_rate)
        return count

    return arrived
