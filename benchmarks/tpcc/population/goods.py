"""The initial rows of ITEM and STOCK. Every warehouse has the same catalogue and a stock of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from benchmarks.driver.share import Share
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.streams import stream
from benchmarks.tpcc.tables import DISTRICTS, Item, Stock
from benchmarks.tpcc.text import Text, a_strings, with_original

ORIGINALS: Final = 0.1
"""The share of items, and of stock, whose data has ORIGINAL in it."""
DIST_INFO: Final = 24
"""Characters of S_DIST_01 to S_DIST_10, and so of OL_DIST_INFO."""
_BLOCK: Final = 1_000


def catalogue(settings: Settings) -> Iterator[Item]:
    """The items, from the first."""
    rng = stream(settings.data_seed, "item")
    randint, text = rng.randint, a_strings(rng)
    for original in _originals(settings.items, rng):
        yield Item(
            im_id=randint(1, 10_000),
            name=text.between(14, 24),
            price=randint(1_00, 100_00),
            data=_data(text, original, rng),
        )


def stocks(settings: Settings, w_id: int) -> Iterator[Stock]:
    """A warehouse's stock of each item, from the first."""
    rng = stream(settings.data_seed, "stock", w_id)
    uniform, text = rng.random, a_strings(rng)
    starts = range(0, DISTRICTS * DIST_INFO, DIST_INFO)
    for original in _originals(settings.items, rng):
        dists = text.take(DISTRICTS * DIST_INFO)
        yield Stock(
            quantity=10 + int(uniform() * 91),
            dists=[dists[start : start + DIST_INFO] for start in starts],
            ytd=0,
            order_cnt=0,
            remote_cnt=0,
            data=_data(text, original, rng),
        )


def _originals(count: int, rng: random.Random) -> Iterator[bool]:
    """For each of `count` rows, whether it has ORIGINAL."""
    share = Share(ORIGINALS, rng)
    for first in range(0, count, _BLOCK):
        yield from share.next_block(min(_BLOCK, count - first))


def _data(text: Text, original: bool, rng: random.Random) -> str:
    data = text.between(26, 50)
    return with_original(data, rng) if original else data
