"""The options of TPC-C on the command line, and the workload that they make."""

from __future__ import annotations

import argparse
from typing import Final

from benchmarks.driver.settings import add_options_of, options_of, settings_from
from benchmarks.tpcc.settings import CUSTOMERS, ITEMS, Settings
from benchmarks.tpcc.workload import TpcC
from styx.errors import ConfigurationError

RATE_DEFAULT: Final = 200.0
"""Requests a second: a NewOrder of ten lines is 36 function calls, so an engine takes fewer than of transfers."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The workload's own options, beside those of the driver."""
    parser.set_defaults(rate=RATE_DEFAULT)
    default = Settings()
    group = parser.add_argument_group(
        "TPC-C",
        f"A wholesaler's orders. Without options there are {default.warehouses} small warehouses, which are loaded "
        "within seconds. A SHARE is from 0 to 1.",
    )
    add = group.add_argument
    warehouses, *others = options_of(Settings)
    add_options_of(group, [warehouses])
    add(
        "--full",
        action="store_true",
        help=f"warehouses of the standard's size: --items {ITEMS} --customers {CUSTOMERS}, 639,000 rows each",
    )
    add(
        "--items",
        type=int,
        metavar="N",
        help=f"in the catalogue, and in each warehouse's stock (default {default.items})",
    )
    add(
        "--customers",
        type=int,
        metavar="N",
        help=f"of a district, each with an order at the start (default {default.customers})",
    )
    add_options_of(group, others)


def make_workload(options: argparse.Namespace) -> TpcC:
    """The workload of parsed options; raises `ConfigurationError`."""
    items, customers = _size(options)
    return TpcC(settings_from(Settings, options, items=items, customers=customers))


def _size(options: argparse.Namespace) -> tuple[int, int]:
    """Items, and customers of a district."""
    items: int | None = options.items
    customers: int | None = options.customers
    if options.full:
        if items is not None or customers is not None:
            raise ConfigurationError(
                "--full says how many items and customers there are: leave --items and --customers out"
            )
        return ITEMS, CUSTOMERS
    default = Settings()
    return default.items if items is None else items, default.customers if customers is None else customers
