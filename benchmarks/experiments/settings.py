"""The options that all experiments share, and their checks."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from benchmarks.driver.options import CLUSTER_SLOTS_DEFAULT
from benchmarks.driver.plan import CLIENTS_MAX
from styx.errors import ConfigurationError

OUT_DEFAULT = Path("results")


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """How every step is measured: `window_s` seconds after `warm_up_s` seconds of the same load.

    Each comparison is made `runs` times. A step that fell into a slow phase of the machine is repeated, up to
    `repeats` times. `keys` is the number of accounts, where an experiment does not say otherwise.
    """

    runs: int = 3
    window_s: float = 4.0
    warm_up_s: float = 1.5
    repeats: int = 1
    clients: int = 1
    slots: int = CLUSTER_SLOTS_DEFAULT
    keys: int = 10_000
    audit: bool = True
    out: Path = OUT_DEFAULT


def add_options(parser: argparse.ArgumentParser, default: Common) -> None:
    """The options that `common_of` reads."""
    group = parser.add_argument_group("measuring")

    def number(name: str, kind: type, value: float, metavar: str, text: str) -> None:
        group.add_argument(name, type=kind, default=value, metavar=metavar, help=f"{text} (default {value:g})")

    number("--runs", int, default.runs, "N", "how often each comparison is made")
    number("--window", float, default.window_s, "SECONDS", "what is counted of each step")
    number("--warm-up", float, default.warm_up_s, "SECONDS", "load before each window, not counted")
    number("--repeats", int, default.repeats, "N", "how often a step in a slow phase of the machine is repeated")
    number("--clients", int, default.clients, "N", "client processes")
    number("--slots", int, default.slots, "N", "parts that the accounts are spread over")
    number("--keys", int, default.keys, "N", "accounts, where an experiment does not say otherwise")
    group.add_argument("--no-audit", action="store_true", help="do not compare the state with the replies at the end")
    group.add_argument(
        "--out",
        type=Path,
        default=default.out,
        metavar="DIR",
        help=f"where the figures (JSON), the chart (SVG) and the table (text) go (default {default.out})",
    )


def common_of(options: argparse.Namespace) -> Common:
    """The parsed options; raises `ConfigurationError` for a number that makes no sense."""
    for name, value, least, most in (
        ("--runs", options.runs, 1, 100),
        ("--window", options.window, 0.5, 3600),
        ("--warm-up", options.warm_up, 0, 3600),
        ("--repeats", options.repeats, 0, 20),
        ("--clients", options.clients, 1, CLIENTS_MAX),
        ("--slots", options.slots, 1, 4096),
        ("--keys", options.keys, 2, 100_000_000),
    ):
        if not least <= value <= most:
            raise ConfigurationError(f"{name} is a number from {least:g} to {most:g}, got {value:g}")
    return Common(
        runs=options.runs,
        window_s=options.window,
        warm_up_s=options.warm_up,
        repeats=options.repeats,
        clients=options.clients,
        slots=options.slots,
        keys=options.keys,
        audit=not options.no_audit,
        out=options.out,
    )
