"""The audit's requests to the bank: new accounts, and transfers that mostly use a few of them."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from typing import Final, NamedTuple

OPENING_BALANCE: Final = 100
AMOUNT_MAX: Final = 60
"""The largest amount. It is large beside the opening balance, so that some transfers abort."""
HOT_ACCOUNTS: Final = 4
HOT_SHARE: Final = 0.5
"""Each side of a transfer is one of the hot accounts with this probability, else any account."""
PREFIX_BYTES: Final = 4


class Call(NamedTuple):
    """One request to the bank: a function of an account, with its arguments."""

    key: str
    function: str
    arguments: tuple[str | int, ...]

    def __str__(self) -> str:
        return f"{self.function} of {self.key} {list(self.arguments)}"


class Accounts:
    """The accounts of one run; their keys begin with a prefix of this run, so that no other client uses them."""

    def __init__(self, number: int) -> None:
        self.prefix = f"audit-{secrets.token_hex(PREFIX_BYTES)}"
        self.keys = [f"{self.prefix}-{each:05}" for each in range(number)]

    @property
    def paid_in(self) -> int:
        """The sum of all balances; it never changes."""
        return len(self.keys) * OPENING_BALANCE

    def openings(self) -> Iterator[Call]:
        """One opening for each account."""
        return (Call(key, "open", (OPENING_BALANCE,)) for key in self.keys)

    def transfers(self) -> Iterator[Call]:
        """Transfers between two different accounts, without end."""
        draw = random.Random()  # noqa: S311 - a workload, not a secret
        hot = self.keys[:HOT_ACCOUNTS]
        while True:
            source, target = (draw.choice(hot if draw.random() < HOT_SHARE else self.keys) for _ in range(2))
            if source != target:
                yield Call(source, "transfer", (target, draw.randint(1, AMOUNT_MAX)))

    def questions(self) -> Iterator[Call]:
        """A request for each account's balance: `credit` of 0 returns it."""
        return (Call(key, "credit", (0,)) for key in self.keys)
