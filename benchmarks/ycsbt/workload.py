"""YCSB-T as a workload for the driver: its data set, its requests and its audit, all made of one set of options."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from benchmarks.driver.workload import Audit, Generator, Loading
from benchmarks.ycsbt import bank
from benchmarks.ycsbt.audit import audit
from benchmarks.ycsbt.bank import Account
from benchmarks.ycsbt.generator import TransferGenerator
from benchmarks.ycsbt.homes import Homes
from benchmarks.ycsbt.settings import Settings
from styx.client.base import Client
from styx.errors import ConfigurationError
from styx.model.operator import Operator


class YcsbT:
    """A `Workload`; raises `ConfigurationError` if the transfers asked for cannot be between these accounts.

    Requests are of `operator`, which is like the app's own; None for that.
    """

    name = "ycsbt"

    def __init__(self, settings: Settings, operator: Operator | None = None) -> None:
        self._options = settings
        self.settings: dict[str, Any] = asdict(settings)
        if settings.partitions is None:
            self.app, variable = bank.app, "app"
        else:
            self.app, variable = bank.partitioned(settings.partitions), f"partitions_{settings.partitions}"
        self.app_target = f"{bank.__name__}:{variable}"
        self._operator = operator or self.app.operators[bank.account.name]
        # It takes its time for millions of accounts, and any two of them will do if the share is not given.
        self._homes = None if settings.multi_partition is None else self._checked_homes(settings.multi_partition)

    def initial(self) -> Iterable[Loading]:
        """See `Workload.initial`: every account with the same balance."""
        keys, balance = self._options.keys, self._options.balance
        yield Loading(self._operator, keys, ((key, Account(balance)) for key in range(keys)))

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        """See `Workload.generator`."""
        rng = random.Random(f"{self.name} {seed} {client} of {clients}")
        return TransferGenerator(self._options, self._operator, self._homes, rng)

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        """See `Workload.audit`."""
        return await audit(client, self._operator, self._options, witnesses)

    def _checked_homes(self, apart: float) -> Homes:
        options = self._options
        homes = Homes(options.active, self._operator, options.n_slots)
        if apart > 0 and homes.slots_in_use < 2:
            raise ConfigurationError(
                f"all {options.active} accounts are in one partition, so no transfer can be between two; "
                "more --partitions, more --slots or more keys make it possible"
            )
        if apart < 1 and not homes.slots_with_pairs:
            raise ConfigurationError(
                f"no two of the {options.active} accounts are in the same partition, so no transfer can stay in one; "
                "more keys make it possible"
            )
        return homes
