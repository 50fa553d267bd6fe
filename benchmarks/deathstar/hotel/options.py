"""The options of the hotel site on the command line, and the workload that they make. Decides nothing else."""

from __future__ import annotations

import argparse
from dataclasses import fields

from benchmarks.deathstar.hotel.settings import (
    CAPACITY,
    MIXES,
    RESERVE_HEAVY,
    ROOMS_WHEN_HEAVY,
    SEATS_WHEN_HEAVY,
    STANDARD,
    Settings,
)
from benchmarks.deathstar.hotel.workload import HotelSite
from benchmarks.driver.zipf import EXPONENT_MAX


def add_options(parser: argparse.ArgumentParser) -> None:
    """The workload's own options, beside those of the driver."""
    default = Settings()
    group = parser.add_argument_group("hotel", "Searches, recommendations, logins and reservations.")
    group.add_argument(
        "--mix",
        choices=[*MIXES],
        default=STANDARD,
        help=f"the shares of the kinds of request: DeathStarBench's ({STANDARD}), 60 %% reservations many of which "
        f"fail ({RESERVE_HEAVY}), or one kind alone (default {STANDARD})",
    )
    for name, help_text in (
        ("hotels", "number of hotels"),
        ("hotels-per-city", "of them within 8 km of a city's middle"),
        ("rooms", f"of each hotel (default {CAPACITY}, or {ROOMS_WHEN_HEAVY} with --mix {RESERVE_HEAVY})"),
        ("flights", "number of flights, each of which goes every day"),
        ("seats", f"of each flight on a day (default {CAPACITY}, or {SEATS_WHEN_HEAVY} with --mix {RESERVE_HEAVY})"),
        ("users", "number of users"),
        ("places", "in the cities, that searches and recommendations are about"),
        ("audit-sample", "entities of each kind that the audit reads beside those that requests have named"),
    ):
        value = getattr(default, name.replace("-", "_"))
        shown = help_text if value is None else f"{help_text} (default {value})"
        group.add_argument(f"--{name}", type=int, default=value, metavar="N", help=shown)
    group.add_argument(
        "--zipf",
        type=float,
        default=default.zipf,
        metavar="EXPONENT",
        help="the popularity of hotels and flights with those who reserve, 0 for uniform, up to "
        f"{EXPONENT_MAX} (default %(default)s)",
    )
    group.add_argument(
        "--wrong-password",
        type=float,
        default=default.wrong_password,
        metavar="SHARE",
        help="of the logins and reservations: those with a wrong password (default %(default)s)",
    )


def make_workload(options: argparse.Namespace) -> HotelSite:
    """The workload of parsed options; raises `ConfigurationError`."""
    return HotelSite(Settings(**{field.name: getattr(options, field.name) for field in fields(Settings)}))
