"""The options of the hotel site on the command line, and the workload that they make."""

from __future__ import annotations

import argparse

from benchmarks.deathstar.hotel.settings import Settings
from benchmarks.deathstar.hotel.workload import HotelSite
from benchmarks.driver.settings import add_options_of, options_of, settings_from


def add_options(parser: argparse.ArgumentParser) -> None:
    """The workload's own options, beside those of the driver."""
    group = parser.add_argument_group("hotel", "Searches, recommendations, logins and reservations.")
    add_options_of(group, options_of(Settings))


def make_workload(options: argparse.Namespace) -> HotelSite:
    """The workload of parsed options; raises `ConfigurationError`."""
    return HotelSite(settings_from(Settings, options))
