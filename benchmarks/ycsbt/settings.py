"""What a YCSB-T workload is made with: the values, their defaults, and what is refused. Never draws or sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.driver.zipf import EXPONENT_MAX
from styx.errors import ConfigurationError
from styx.model.operator import PARTITIONS_MAX

AMOUNT_MAX: Final = 100
"""Transfers move from 1 to this."""
MONEY_MAX: Final = 2**62
"""All balances together: half of what 64 bits hold, so that a request for more than that is still a number."""


@dataclass(frozen=True)
class Settings:
    """The options of a workload; raises `ConfigurationError` for what cannot be.

    `zipf` is the exponent of the creditors' distribution, 0 for uniform. Only the first `hot` accounts take part, 0 for
    all of them. `multi_partition` is the share of transfers between two partitions, None to let it be what the keys
    make it; `n_slots` is the deployment's, which decides the partitions. `read_only` is the share of requests that read
    `read_keys` accounts and write none, `overdraft` the share of transfers that ask for more money than there is.
    `partitions` are the operator's, None for one a slot. With `wait` a transfer's first function waits for its second.
    `audit_keys` is how many accounts the audit reads if the run has touched fewer.
    """

    keys: int = 10_000
    balance: int = 1_000_000
    zipf: float = 0.0
    hot: int = 0
    multi_partition: float | None = None
    n_slots: int = 4
    read_only: float = 0.0
    read_keys: int = 2
    overdraft: float = 0.01
    wait: bool = False
    partitions: int | None = None
    audit_keys: int = 100_000

    def __post_init__(self) -> None:
        _require(self.keys >= 2, f"a transfer needs two accounts: there must be at least 2 keys, got {self.keys}")
        _require(self.balance >= 1, f"a balance is a number of 1 or more, got {self.balance}")
        _require(
            self.money <= MONEY_MAX,
            f"{self.keys} accounts with {self.balance} each are more money than 64 bits count; "
            f"the balance can be {MONEY_MAX // self.keys} at most",
        )
        # Written so that a NaN is refused.
        _require(0 <= self.zipf <= EXPONENT_MAX, f"the Zipf exponent is from 0 to {EXPONENT_MAX}, got {self.zipf}")
        _require(
            self.hot == 0 or 2 <= self.hot <= self.keys,
            f"the number of hot keys is from 2 to that of all keys ({self.keys}), got {self.hot}",
        )
        for name in ("multi_partition", "read_only", "overdraft"):
            share = getattr(self, name)
            _require(
                share is None or 0 <= share <= 1,
                f"the share --{name.replace('_', '-')} is from 0 to 1, such as 0.2 for 20 %; got {share}",
            )
        _require(
            1 <= self.read_keys <= self.active,
            f"a request reads from 1 to {self.active} accounts (those that take part), got {self.read_keys}",
        )
        _require(
            self.partitions is None or 1 <= self.partitions <= PARTITIONS_MAX,
            f"the number of partitions is from 1 to {PARTITIONS_MAX}, got {self.partitions}",
        )
        _require(self.n_slots >= 1, f"a deployment has at least 1 slot, got {self.n_slots}")
        _require(self.audit_keys >= 0, f"the audit reads 0 accounts or more, got {self.audit_keys}")

    @property
    def active(self) -> int:
        """How many accounts take part."""
        return self.hot or self.keys

    @property
    def money(self) -> int:
        """The sum of all balances, always."""
        return self.keys * self.balance


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigurationError(message)
