"""The options of TPC-C on the command line, and the workload that they make. Decides nothing else."""

from __future__ import annotations

import argparse
from typing import Final

from benchmarks.tpcc.mixes import MIXES
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
    add(
        "--warehouses",
        type=int,
        default=default.warehouses,
        metavar="N",
        help="each with 10 districts; all of a warehouse is on one slot (default %(default)s)",
    )
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
    add(
        "--mix",
        choices=tuple(MIXES),
        default=default.mix,
        help="standard: 45 %% NewOrder, 43 %% Payment, 4 %% of each of the others; new-order-payment: 52 %% and "
        "48 %%; or one transaction alone (default %(default)s)",
    )
    add(
        "--remote-item",
        type=float,
        default=default.remote_item,
        metavar="SHARE",
        help="of the order lines: those that another warehouse supplies (default %(default)s)",
    )
    add(
        "--rollback",
        type=float,
        default=default.rollback,
        metavar="SHARE",
        help="of the NewOrders: those that name an item that does not exist, and abort (default %(default)s)",
    )
    add(
        "--remote-customer",
        type=float,
        default=default.remote_customer,
        metavar="SHARE",
        help="of the Payments: those of another warehouse's customer (default %(default)s)",
    )
    add(
        "--by-name",
        type=float,
        default=default.by_name,
        metavar="SHARE",
        help="of the Payments and OrderStatuses: those by the customer's last name (default %(default)s)",
    )
    add(
        "--data-seed",
        type=int,
        default=default.data_seed,
        metavar="N",
        help="the same one makes the same rows (default %(default)s)",
    )


def make_workload(options: argparse.Namespace) -> TpcC:
    """The workload of parsed options; raises `ConfigurationError`."""
    items, customers = _size(options)
    return TpcC(
        Settings(
            warehouses=options.warehouses,
            items=items,
            customers=customers,
            mix=options.mix,
            remote_item=options.remote_item,
            rollback=options.rollback,
            remote_customer=options.remote_customer,
            by_name=options.by_name,
            data_seed=options.data_seed,
        )
    )


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
