"""An exact share of a sequence in random order, for a percentage on the command line."""

from __future__ import annotations

import random


class Share:
    """Chooses elements of a sequence, block by block. At the end of every block, the number of chosen elements differs
    from the share by at most a half.
    """

    def __init__(self, share: float, rng: random.Random) -> None:
        self._share = share
        self._rng = rng
        self._seen = 0
        self._given = 0

    def next_block(self, size: int) -> list[bool]:
        """For each of the next `size` elements, whether it is chosen."""
        self._seen += size
        chosen = int(self._seen * self._share + 0.5) - self._given
        self._given += chosen
        if chosen == size:
            return [True] * size
        block = [False] * size
        for at in self._rng.sample(range(size), chosen):
            block[at] = True
        return block
