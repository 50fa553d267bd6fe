"""The options of the marketplace on the command line, and the workload that they make. The application's own settings
are in the environment (README, Settings).
"""

from __future__ import annotations

import argparse
import secrets
import weakref
from typing import Final

from benchmarks.driver.settings import add_options_of, options_of, settings_from
from benchmarks.marketplace.driving.mirror import new_mirror_file
from benchmarks.marketplace.driving.settings import READ, SQL, Settings
from benchmarks.marketplace.driving.workload import Marketplace
from benchmarks.marketplace.provider.own import add_provider_options, provider_of
from styx.errors import ConfigurationError

RATE_DEFAULT: Final = 100.0
"""Transactions a second: one of scenario A is 2.6 requests, and a checkout of ten lines 60 function calls."""
RUN_BYTES: Final = 3
"""Of a run's name."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The workload's own options, beside those of the driver."""
    parser.set_defaults(rate=RATE_DEFAULT)
    group = parser.add_argument_group(
        "Online Marketplace",
        f"Sellers, carts and orders. Without options there are {Settings().customers} customers and products. A SHARE "
        "is from 0 to 1. The application's own settings, such as MARKETPLACE_REPLICATION, are in the environment.",
    )
    add_options_of(group, options_of(Settings))
    add_provider_options(group)


def _check_way(settings: Settings, options: argparse.Namespace) -> None:
    """Raises `ConfigurationError` if dashboards are to be read in a way that the requests' clients do not have."""
    where = getattr(options, "on", "embedded")
    # A command without the option has all its clients behind a gateway.
    through_kafka = where.startswith("kafka:") or (where == "cluster" and not getattr(options, "gateway", True))
    if settings.dashboard == READ and through_kafka:
        raise ConfigurationError(
            "--dashboard read needs clients of a gateway: give --gateway, or --on http://HOST:PORT"
        )
    # A command without the option has no other deployment than one that runs.
    if settings.dashboard == SQL and not getattr(options, "replica", None):
        raise ConfigurationError("--dashboard sql needs a replica: give --replica own, or the URL of one that runs")


def make_workload(options: argparse.Namespace) -> Marketplace:
    """The workload of parsed options; raises `ConfigurationError`. The first one, in the driver's process, fixes what
    all client processes have in common, and leaves it in the options.
    """
    if getattr(options, "run_name", None) is None:
        options.run_name = secrets.token_hex(RUN_BYTES)
    settings = settings_from(Settings, options, run=options.run_name)
    _check_way(settings, options)
    provider = provider_of(options)
    if getattr(options, "clients", 1) == 1:
        return Marketplace(settings, provider)
    named: str | None = getattr(options, "mirror_file", None)
    file = new_mirror_file(settings.products) if named is None else None
    options.mirror_file = named or str(file)
    shared = settings_from(Settings, options, run=options.run_name, mirror_file=options.mirror_file)
    workload = Marketplace(shared, provider)
    if file is not None:
        weakref.finalize(workload, file.unlink, missing_ok=True)
    return workload
