"""One step: reads of carts and changes of products at one rate for some seconds, in an open loop, each read in one of
three ways.

- `apart`: the client reads the price, and then the discount, each the latest. This is the control.
- `pinned`: likewise, but the discount at the epoch of the price; if that is not kept any more, both again.
- `once`: one read of the cart, which calls both.

A request is late from the time at which it was due. A read's latency lasts until it has both numbers, however often it
had to begin. Nothing here decides what is good.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from benchmarks.driver.latency import Cells, percentile_us, record
from benchmarks.read_anomalies.app import cart, change, discount, discount_now, price, price_now, shown
from styx.client.http import HttpClient
from styx.errors import SnapshotTooOld

READS: Final = 0.8
"""The share of reads; the others are changes."""
ATTEMPTS_MAX: Final = 100
"""How often a read begins, if what it needs is not kept any more."""


@dataclass(frozen=True)
class Wanted:
    """`way` is one of `WAYS`. `pause_s` is how long a client, or a service, is busy between the two reads of a pair."""

    way: str
    rate: float
    items: int
    seconds: float
    pause_s: float
    seed: int


@dataclass
class Found:
    """`reads` that have both numbers, `torn` ones, and how often a read began again (`too_old`). `latencies` of reads,
    `change_latencies` of changes; those of the first quarter of the time, the warm-up, count nowhere.
    """

    reads: int = 0
    torn: int = 0
    too_old: int = 0
    changes: int = 0
    failures: list[str] = field(default_factory=list)
    latencies: Cells = field(default_factory=dict)
    change_latencies: Cells = field(default_factory=dict)

    @property
    def torn_share(self) -> float:
        """Of the reads."""
        return self.torn / self.reads if self.reads else 0.0

    @property
    def too_old_share(self) -> float:
        """Of all attempts to read."""
        attempts = self.reads + self.too_old
        return self.too_old / attempts if attempts else 0.0

    def read_ms(self, percent: float) -> float:
        """A percentile of the reads' latencies."""
        return percentile_us(self.latencies, percent) / 1_000


Pair = tuple[int, int]
Way = Callable[[HttpClient, int, Wanted, Found], Awaitable[Pair]]


async def pause(seconds: float) -> None:
    """What happens between the two reads of a pair, as far as the client knows."""
    await asyncio.sleep(seconds)


async def _apart(client: HttpClient, product: int, wanted: Wanted, found: Found) -> Pair:
    first = await client.read(price, product, price_now)
    await pause(wanted.pause_s)
    return first, await client.read(discount, product, discount_now)


async def _pinned(client: HttpClient, product: int, wanted: Wanted, found: Found) -> Pair:
    for _ in range(ATTEMPTS_MAX):
        first = await client.read_request(price, product, price_now)
        await pause(wanted.pause_s)
        try:
            return first.unwrap(), await client.read(discount, product, discount_now, at=first.epoch)
        except SnapshotTooOld:
            found.too_old += 1
    raise SnapshotTooOld(f"not after {ATTEMPTS_MAX} attempts")


async def _once(client: HttpClient, product: int, wanted: Wanted, found: Found) -> Pair:
    one, other = await client.read(cart, 0, shown, product)
    return one, other


WAYS: Final[dict[str, Way]] = {"apart": _apart, "pinned": _pinned, "once": _once}


async def run_step(client: HttpClient, wanted: Wanted) -> Found:
    """Sends the step's requests as they are due, at random times (a Poisson process), and waits for all answers."""
    rng = Random(f"{wanted.seed} {wanted.way} {wanted.rate} {wanted.items}")
    found, warm = Found(), Found()
    count = int(wanted.rate * wanted.seconds)
    began_s = time.monotonic()
    under_way: set[asyncio.Task[None]] = set()
    due_s = began_s
    for number in range(count):
        due_s += rng.expovariate(wanted.rate)
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        counts = found if number >= count // 4 else warm
        product = rng.randrange(wanted.items)
        reads = rng.random() < READS
        doing = _read(client, product, wanted, counts, due_s) if reads else _change(client, product, counts, due_s)
        task = asyncio.create_task(_kept(doing, counts))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    return found


async def _kept(doing: Coroutine[Any, Any, None], found: Found) -> None:
    try:
        await doing
    except Exception as error:  # noqa: BLE001 - whatever it is, the step has failed by it
        found.failures.append(f"{type(error).__name__}: {error}")


async def _read(client: HttpClient, product: int, wanted: Wanted, found: Found, due_s: float) -> None:
    one, other = await WAYS[wanted.way](client, product, wanted, found)
    found.reads += 1
    found.torn += one != other
    record(found.latencies, [int((time.monotonic() - due_s) * 1e6)])


async def _change(client: HttpClient, product: int, found: Found, due_s: float) -> None:
    await client.call(price, product, change)
    found.changes += 1
    record(found.change_latencies, [int((time.monotonic() - due_s) * 1e6)])
