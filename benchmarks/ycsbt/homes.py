"""The slot of each account, and the accounts of each slot.

Key 0 is the most popular account, key 1 the second, and so on. The keys need no scrambling: the partition function is a
CRC, which spreads consecutive small numbers evenly over the slots.
"""

from __future__ import annotations

from array import array
from typing import Final

from styx.model.operator import Operator

_CHUNK: Final = 100_000


class Homes:
    """Of the accounts 0 to `accounts` - 1, in a deployment with `n_slots`, by the operator's partition function.

    `slot[key]` is an account's slot, and `keys[slot]` are the accounts on it.
    """

    def __init__(self, accounts: int, operator: Operator, n_slots: int) -> None:
        self.slot = array("H")
        self.keys = [array("Q") for _ in range(n_slots)]
        for first in range(0, accounts, _CHUNK):
            self.slot.extend(operator.slots_of(range(first, min(first + _CHUNK, accounts)), n_slots))
        for key, slot in enumerate(self.slot):
            self.keys[slot].append(key)

    @property
    def slots_in_use(self) -> int:
        """Slots with at least one account."""
        return sum(1 for keys in self.keys if keys)

    @property
    def slots_with_pairs(self) -> int:
        """Slots with at least two accounts, between which a transfer stays on the slot."""
        return sum(1 for keys in self.keys if len(keys) > 1)
