"""An exact mixture of several kinds in random order: `Share` for more than two."""

from __future__ import annotations

import random
from collections.abc import Mapping

from benchmarks.driver.share import Share


class Mixture:
    """Gives the kind of each element of a sequence, block by block. `shares` are by kind and sum to 1. At the end of
    every block, each kind's count differs from its share by at most half the number of kinds. Kinds with a share of 0
    never come.
    """

    def __init__(self, shares: Mapping[str, float], rng: random.Random) -> None:
        self._rng = rng
        self._splits: list[tuple[str, Share]] = []
        wanted = {kind: share for kind, share in shares.items() if share > 0}
        left = 1.0
        for number, (kind, share) in enumerate(wanted.items(), start=1):
            # The elements that no earlier kind has taken. The last kind takes all of them.
            self._splits.append((kind, Share(share / left if number < len(wanted) else 1.0, rng)))
            left -= share

    def next_block(self, size: int) -> list[str]:
        """The kinds of the next `size` elements."""
        block: list[str] = []
        for kind, split in self._splits:
            block += [kind] * sum(split.next_block(size - len(block)))
        self._rng.shuffle(block)
        return block
