"""Independent streams of random numbers, one for each name.

Each part of the data set has a stream of its own, by table and place. So any part can be made again by itself, in any
order and in any process, and is the same.
"""

from __future__ import annotations

import random


def stream(seed: int, *name: int | str) -> random.Random:
    """The stream of that name under `seed`."""
    return random.Random(f"tpcc {seed} {' '.join(map(str, name))}")
