"""`python -m benchmarks.travelling_numbers`: transactions whose new number goes to another slot.

Every request increments one counter, and the new value is an argument or the key of a call to another slot, or is there
for a synchronous result, or goes on over three slots. All requests of a shape are sent at once. No number is known
before its transaction's turn, so the calls that a first run made change in the lock phase. The command shows what that
costs, and how often a transaction had to be carried into a next epoch. Then it compares all replies and all state with
the serial execution.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks.driver.one_at_a_time import load_test
from benchmarks.driver.place import IN_FLIGHT_MAX, add_place_options, check_number, check_place, placed
from benchmarks.travelling_numbers.app import app
from benchmarks.travelling_numbers.run import Figures, measured
from benchmarks.travelling_numbers.shapes import SHAPES, SLOTS_MIN
from proof.cluster.child import ChildFailed
from styx.errors import ConfigurationError
from styx.model.limits import TIMEOUT_SECONDS_MAX
from styx.native.form import FORM, describe

APP: Final = "benchmarks.travelling_numbers.app:app"
OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
_HEADER: Final = f"{'':16} {'each/s':>8} {'CPU µs':>8} {'epochs':>7} {'locked':>7} {'carried':>8} {'how often':>16}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        check_place(options, SLOTS_MIN)
        check_number("--requests", options.requests, 1, IN_FLIGHT_MAX)
        check_number("--timeout", options.timeout, 0.001, TIMEOUT_SECONDS_MAX)
        with load_test():
            found = asyncio.run(_run(options))
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return USAGE
    except (ChildFailed, OSError) as error:
        print(error, file=sys.stderr)
        return FAILED
    return FAILED if any(figures.wrong for figures in found) else OK


async def _run(options: argparse.Namespace) -> list[Figures]:
    found = []
    async with placed(options, app, APP) as place, place.deployment.open_client() as client:
        print(f"{options.requests} requests a shape on {place.title}, {place.n_slots} slots, seed {options.seed}")
        print(f"CPython {platform.python_version()}, engine {describe(FORM)}")
        print(_HEADER, flush=True)
        for name in dict.fromkeys(options.shape or SHAPES):
            figures = await measured(place, client, SHAPES[name], options.requests, options.seed, options.timeout)
            print("\n".join(lines(figures)), flush=True)
            found.append(figures)
    return found


def lines(figures: Figures) -> list[str]:
    """The figures of a shape, and what is wrong with it."""
    answered, carried = max(figures.answered, 1), figures.carries
    often = f"{carried.mean:.1f}, at most {carried.most}" if carried.carried else "-"
    return [
        f"{figures.shape.name:16} {figures.answered / figures.seconds:8,.0f} {figures.cpu_s / answered * 1e6:8,.0f} "
        f"{carried.epochs:7,} {figures.locked / answered:7.0%} {carried.share:8.1%} {often:>16}",
        *(f"WRONG {figures.shape.name}: {each}" for each in figures.wrong),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.travelling_numbers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="how often: the mean of those that were carried. CPU: of the workers; of an engine in this process "
        "with its client.\nexit status 0: all is right; 1: it is not, or a request has no reply; 2: an option is wrong",
    )
    add_place_options(parser)
    parser.add_argument("--requests", type=int, default=2_000, metavar="N", help="of each shape (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the same seed gives the same requests")
    parser.add_argument("--shape", choices=list(SHAPES), action="append", help="repeatable (default: all)")
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="a reply that takes longer (default 120)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
