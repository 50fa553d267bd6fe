"""Transfers as request records, for loops in one process: seeded, uniform, encoded before anything is timed."""

from __future__ import annotations

import random
from typing import Final

import msgspec

from styx.messages import Request, encode_request

START_BALANCE: Final = 1_000_000
AMOUNT_MAX: Final = 100

Transfer = tuple[int, int, int]
"""Debtor, creditor, amount."""


def transfers(count: int, keys: int, seed: int) -> list[Transfer]:
    """Distinct uniform keys."""
    rng = random.Random(seed)
    drawn = []
    for _ in range(count):
        debtor, creditor = rng.sample(range(keys), 2)
        drawn.append((debtor, creditor, rng.randint(1, AMOUNT_MAX)))
    return drawn


def encoded(drawn: list[Transfer]) -> list[bytes]:
    """The transfers as request records."""
    pack = msgspec.msgpack.Encoder().encode
    return [
        encode_request(Request(f"r{i}", "account", debtor, "transfer", pack((creditor, amount))))
        for i, (debtor, creditor, amount) in enumerate(drawn)
    ]
