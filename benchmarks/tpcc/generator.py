"""The source of one client's requests: the five transactions in their mix, from any terminal.

Requests are made in blocks, so that `next` costs one look into a list most of the time. A block has the mix's shares
exactly, in a random order: it is the deck of cards of clause 5.2.4.2.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

from benchmarks.driver.block_generator import BlockGenerator
from benchmarks.driver.mixture import Mixture
from benchmarks.driver.workload import Planned
from benchmarks.tpcc.inputs import Deliveries, Inputs, NewOrders, OrderStatuses, Payments, StockLevels
from benchmarks.tpcc.mixes import DELIVERY, MIXES, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.witness import Witness

BLOCK: Final = 100
"""Requests that are made at once: shares are whole hundredths, and a block takes about a millisecond."""


class TerminalGenerator(BlockGenerator):
    """A `Generator` of what the terminals of all warehouses ask for."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        super().__init__(Witness(settings))
        self._mixture = Mixture(MIXES[settings.mix], rng)
        self._inputs: dict[str, Inputs] = {
            NEW_ORDER: NewOrders(settings, rng),
            PAYMENT: Payments(settings, rng),
            ORDER_STATUS: OrderStatuses(settings, rng),
            DELIVERY: Deliveries(settings, rng),
            STOCK_LEVEL: StockLevels(settings, rng),
        }

    def next_block(self) -> list[Planned]:
        """See `BlockGenerator.next_block`."""
        kinds = self._mixture.next_block(BLOCK)
        made = {kind: self._inputs[kind].next_block(count) for kind, count in Counter(kinds).items()}
        return [made[kind].pop() for kind in kinds]
