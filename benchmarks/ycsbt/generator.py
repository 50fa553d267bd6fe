"""The source of one client's requests: which accounts, how much, and in which mixture.

The creditor is drawn first, by the Zipf distribution over the accounts that take part, then the debtor, uniformly among
those that may pay it: all others, or those on the same or on the other slots if the share of transfers between
partitions is given. Requests are made in blocks, so that `next` costs one look into a list most of the time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from benchmarks.driver.block_generator import BlockGenerator
from benchmarks.driver.share import Share
from benchmarks.driver.workload import Planned
from benchmarks.driver.zipf import zipf_ranks
from benchmarks.ycsbt.homes import Homes
from benchmarks.ycsbt.settings import AMOUNT_MAX, Settings
from benchmarks.ycsbt.witness import READ, TRANSFER, Witness
from styx.model.operator import Operator

BLOCK: Final = 250
"""The requests of a block. A block takes less than a millisecond, because no request is sent meanwhile."""


class TransferGenerator(BlockGenerator):
    """A `Generator` of transfers and reads. `homes` is needed only if the share between partitions is given."""

    def __init__(self, settings: Settings, operator: Operator, homes: Homes | None, rng: random.Random) -> None:
        super().__init__(Witness(settings))
        self._settings = settings
        self._operator = operator
        self._rng = rng
        self._creditor = zipf_ranks(settings.active, settings.zipf, rng)
        self._pair: Callable[[bool], tuple[int, int]] = self._any_pair if homes is None else self._pairs_by_slot(homes)
        self._reads = Share(settings.read_only, rng)
        self._overdrafts = Share(settings.overdraft, rng)
        self._apart = Share(settings.multi_partition or 0, rng)
        self._transfer = "transfer_and_wait" if settings.wait else "transfer"

    def next_block(self) -> list[Planned]:
        """See `BlockGenerator.next_block`."""
        reads = self._reads.next_block(BLOCK)
        transfers = self._transfers(BLOCK - sum(reads))
        if len(transfers) == BLOCK:
            return transfers
        return [self._read() if read else transfers.pop() for read in reads]

    def _transfers(self, count: int) -> list[Planned]:
        uniform, pair = self._rng.random, self._pair
        operator, function, too_much = self._operator, self._transfer, self._settings.money + 1
        block = []
        for apart, overdraft in zip(self._apart.next_block(count), self._overdrafts.next_block(count), strict=True):
            debtor, creditor = pair(apart)
            amount = too_much if overdraft else 1 + int(uniform() * AMOUNT_MAX)
            block.append(Planned(TRANSFER, operator, debtor, function, (creditor, amount)))
        return block

    def _read(self) -> Planned:
        """Reads one account that is drawn as creditors are, and others that are not."""
        uniform, active, wanted = self._rng.random, self._settings.active, self._settings.read_keys
        first = self._creditor()
        if wanted == 1:
            return Planned(READ, self._operator, first, "read", ())
        # A dictionary keeps their order, so that the same seed reads in the same order.
        accounts = {first: None}
        while len(accounts) < wanted:
            accounts[int(uniform() * active)] = None
        return Planned(READ, self._operator, first, "read_many", ([*accounts][1:],))

    def _any_pair(self, _apart: bool) -> tuple[int, int]:
        """A debtor and a creditor on whichever slots."""
        uniform, active = self._rng.random, self._settings.active
        creditor = self._creditor()
        while True:
            debtor = int(uniform() * active)
            if debtor != creditor:
                return debtor, creditor

    def _pairs_by_slot(self, homes: Homes) -> Callable[[bool], tuple[int, int]]:
        uniform, active, draw_creditor = self._rng.random, self._settings.active, self._creditor
        slot, keys = homes.slot, homes.keys

        def pair(apart: bool) -> tuple[int, int]:
            while True:
                creditor = draw_creditor()
                home = slot[creditor]
                if apart:
                    while slot[debtor := int(uniform() * active)] == home:
                        pass
                    return debtor, creditor
                neighbours = keys[home]
                # An account that is alone on its slot is paid only by accounts of other slots.
                if len(neighbours) > 1:
                    while (debtor := neighbours[int(uniform() * len(neighbours))]) == creditor:
                        pass
                    return debtor, creditor

        return pair
