"""The settings of a YCSB-T workload: values, defaults and checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.driver.settings import require, require_shares, setting, share
from benchmarks.driver.zipf import EXPONENT_MAX
from styx.model.operator import PARTITIONS_MAX

AMOUNT_MAX: Final = 100
"""Transfers move from 1 to this."""
MONEY_MAX: Final = 2**62
"""All balances together: half of what 64 bits hold, so that a request for more than that is still a number."""


@dataclass(frozen=True)
class Settings:
    """The options of a workload; raises `ConfigurationError` for what cannot be.

    `hot` 0 is all accounts; `multi_partition` None is what the keys make it, and `partitions` None one for each of the
    deployment's `n_slots`.
    """

    keys: int = 10_000
    balance: int = setting(
        1_000_000,
        "what each account has at the start, in units of money; a transfer moves 1 to 100 (default %(default)s)",
    )
    zipf: float = setting(
        0.0,
        f"the creditors' distribution, 0 for uniform, up to {EXPONENT_MAX} (default %(default)s); debtors are uniform",
        metavar="EXPONENT",
    )
    hot: int = setting(0, "only so many accounts take part (default: all)")
    multi_partition: float | None = share(
        None, "of the transfers: those between two partitions, exactly (default: what the accounts drawn make it)"
    )
    n_slots: int = 4
    read_only: float = share(0.0, "of the requests: those that only read (default %(default)s)")
    read_keys: int = setting(2, "accounts that such a request reads, in one transaction (default %(default)s)")
    overdraft: float = share(
        0.01, "of the transfers: those that ask for more than there is, and abort (default %(default)s)"
    )
    wait: bool = setting(False, "the debtor's function waits for the creditor's (default: it does not)")
    partitions: int | None = setting(None, "partitions of the accounts (default: one for each slot)")
    audit_keys: int = setting(
        100_000,
        "the audit reads all accounts up to this many; of more, those that were touched and others up to this many "
        "(default %(default)s)",
    )

    def __post_init__(self) -> None:
        require(self.keys >= 2, f"a transfer needs two accounts: there must be at least 2 keys, got {self.keys}")
        require(self.balance >= 1, f"a balance is a number of 1 or more, got {self.balance}")
        require(
            self.money <= MONEY_MAX,
            f"{self.keys} accounts with {self.balance} each are more money than 64 bits count; "
            f"the balance can be {MONEY_MAX // self.keys} at most",
        )
        require(0 <= self.zipf <= EXPONENT_MAX, f"the Zipf exponent is from 0 to {EXPONENT_MAX}, got {self.zipf}")
        require(
            self.hot == 0 or 2 <= self.hot <= self.keys,
            f"the number of hot keys is from 2 to that of all keys ({self.keys}), got {self.hot}",
        )
        require_shares(self, "0.2 for 20 %", "multi_partition", "read_only", "overdraft")
        require(
            1 <= self.read_keys <= self.active,
            f"a request reads from 1 to {self.active} accounts (those that take part), got {self.read_keys}",
        )
        require(
            self.partitions is None or 1 <= self.partitions <= PARTITIONS_MAX,
            f"the number of partitions is from 1 to {PARTITIONS_MAX}, got {self.partitions}",
        )
        require(self.n_slots >= 1, f"a deployment has at least 1 slot, got {self.n_slots}")
        require(self.audit_keys >= 0, f"the audit reads 0 accounts or more, got {self.audit_keys}")

    @property
    def active(self) -> int:
        """How many accounts take part."""
        return self.hot or self.keys

    @property
    def money(self) -> int:
        """The sum of all balances, always."""
        return self.keys * self.balance
