"""The figures of turns with and without reads, and what they say together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Turn(NamedTuple):
    """One window: transactions and reads a second, and the busy processors of all workers together."""

    reading: bool
    transactions: float
    reads: float
    cores: float


class Cost(NamedTuple):
    """`rate`: the writers' rate with reads by that without, of turns side by side. `transaction_us` and `read_us`: the
    workers' processor time for one. `left`: the share of the workers' processors that the reads leave, if each of
    `workers` has a processor of its own: where processes share processors, the rate says less than this.
    """

    rate: float
    transaction_us: float
    read_us: float
    reads: float
    left: float


def cost_of(turns: Sequence[Turn], workers: int) -> Cost:
    """Of pairs of turns, each in any order. A read's processor time is what the workers take beyond that of as many
    transactions without reads.
    """
    pairs = [sorted(turns[at : at + 2]) for at in range(0, len(turns), 2)]
    assert all(not without.reading and with_them.reading for without, with_them in pairs), "a pair has one of each"
    transaction_us = median(without.cores / without.transactions for without, _ in pairs) * 1e6
    reads = median(with_them.reads for _, with_them in pairs)
    read_us = median(
        (with_them.cores - with_them.transactions * without.cores / without.transactions) / with_them.reads
        for without, with_them in pairs
    )
    return Cost(
        rate=median(with_them.transactions / without.transactions for without, with_them in pairs),
        transaction_us=transaction_us,
        read_us=read_us * 1e6,
        reads=reads,
        left=1 - reads * read_us / workers,
    )
