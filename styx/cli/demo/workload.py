"""The demo's requests: accounts to open, and transfers that crowd on a few of them. Same seed, same calls."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final, NamedTuple

OPENING_BALANCE: Final = 100
AMOUNT_MAX: Final = 60
"""Large beside the opening balance, so that many accounts run dry and transfers from them abort."""
ZIPF_EXPONENT: Final = 0.9
"""Account n is chosen in proportion to 1 / n ** this: one of a thousand takes part in every fifth transfer."""


class Call(NamedTuple):
    """One request to the bank: a function of an account, with its arguments."""

    key: str
    function: str
    arguments: tuple[Any, ...] = ()


def account_key(number: int) -> str:
    """The key of an account, numbered from 0."""
    return f"a{number:06}"


def openings(accounts: int) -> Iterator[Call]:
    """One opening for each account."""
    return (Call(account_key(number), "open", (OPENING_BALANCE,)) for number in range(accounts))


def balances(accounts: int) -> Iterator[Call]:
    """One question for each account."""
    return (Call(account_key(number), "balance") for number in range(accounts))


def transfers(accounts: int, seed: int) -> Iterator[Call]:
    """Transfers between two different accounts, without end."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    weights = list(accumulate(1 / rank**ZIPF_EXPONENT for rank in range(1, accounts + 1)))
    numbers = range(accounts)
    while True:
        source, target = rng.choices(numbers, cum_weights=weights, k=2)
        if source != target:
            yield Call(account_key(source), "transfer", (account_key(target), rng.randint(1, AMOUNT_MAX)))
