"""The options of YCSB-T on the command line, and the workload made from them."""

from __future__ import annotations

import argparse

from benchmarks.driver.settings import add_options_of, options_of, settings_from
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
    add_options_of(group, options_of(Settings))


def make_workload(options: argparse.Namespace) -> YcsbT:
    """The workload of parsed options; raises `ConfigurationError`."""
    return YcsbT(settings_from(Settings, options, keys=_number_of_keys(options), n_slots=options.slots))


def _number_of_keys(options: argparse.Namespace) -> int:
    if options.keys_per_worker is not None:
        if options.keys_per_worker < 1:
            raise ConfigurationError(f"--keys-per-worker is 1 or more, got {options.keys_per_worker}")
        return int(options.keys_per_worker * options.workers)
    return Settings().keys if options.keys is None else int(options.keys)
