"""The options of YCSB-T on the command line, and the workload that they make. Decides nothing else."""

from __future__ import annotations

import argparse

from benchmarks.driver.zipf import EXPONENT_MAX
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.errors import ConfigurationError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The workload's own options, beside those of the driver."""
    default = Settings()
    group = parser.add_argument_group("YCSB-T", "Transfers between accounts. A SHARE is from 0 to 1.")
    number = group.add_mutually_exclusive_group()
    number.add_argument("--keys", type=int, metavar="N", help=f"number of accounts (default {default.keys})")
    number.add_argument(
        "--keys-per-worker", type=int, metavar="N", help="number of accounts as a multiple of --workers"
    )
    add = group.add_argument
    add(
        "--balance",
        type=int,
        default=default.balance,
        metavar="N",
        help="what each account has at the start, in units of money; a transfer moves 1 to 100 (default %(default)s)",
    )
    add(
        "--zipf",
        type=float,
        default=default.zipf,
        metavar="EXPONENT",
        help=f"the creditors' distribution, 0 for uniform, up to {EXPONENT_MAX} (default %(default)s); "
        "debtors are uniform",
    )
    add(
        "--hot",
        type=int,
        default=default.hot,
        metavar="N",
        help="only so many accounts take part (default: all)",
    )
    add(
        "--multi-partition",
        type=float,
        metavar="SHARE",
        help="of the transfers: those between two partitions, exactly (default: what the accounts drawn make it)",
    )
    add(
        "--read-only",
        type=float,
        default=default.read_only,
        metavar="SHARE",
        help="of the requests: those that only read (default %(default)s)",
    )
    add(
        "--read-keys",
        type=int,
        default=default.read_keys,
        metavar="N",
        help="accounts that such a request reads, in one transaction (default %(default)s)",
    )
    add(
        "--overdraft",
        type=float,
        default=default.overdraft,
        metavar="SHARE",
        help="of the transfers: those that ask for more than there is, and abort (default %(default)s)",
    )
    add("--wait", action="store_true", help="the debtor's function waits for the creditor's (default: it does not)")
    add("--partitions", type=int, metavar="N", help="partitions of the accounts (default: one for each slot)")
    add(
        "--audit-keys",
        type=int,
        default=default.audit_keys,
        metavar="N",
        help="the audit reads all accounts up to this many; of more, those that were touched and others "
        "up to this many (default %(default)s)",
    )


def make_workload(options: argparse.Namespace) -> YcsbT:
    """The workload of parsed options; raises `ConfigurationError`."""
    return YcsbT(
        Settings(
            keys=_number_of_keys(options),
            balance=options.balance,
            zipf=options.zipf,
            hot=options.hot,
            multi_partition=options.multi_partition,
            n_slots=options.slots,
            read_only=options.read_only,
            read_keys=options.read_keys,
            overdraft=options.overdraft,
            wait=options.wait,
            partitions=options.partitions,
            audit_keys=options.audit_keys,
        )
    )


def _number_of_keys(options: argparse.Namespace) -> int:
    if options.keys_per_worker is not None:
        if options.keys_per_worker < 1:
            raise ConfigurationError(f"--keys-per-worker is 1 or more, got {options.keys_per_worker}")
        return int(options.keys_per_worker * options.workers)
    return Settings().keys if options.keys is None else int(options.keys)
