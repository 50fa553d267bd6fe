"""`python -m benchmarks.contention`: random programs on a few entities, at a fixed rate.

The programs' targets, arguments and results depend on the state that they find. So nearly every transaction is in
conflict, and makes other calls when it is run again. Requests are sent at times that are drawn beforehand, and latency
counts from there. At the end the whole history is checked: each request has one reply, and all replies and the state
are those of a serial execution.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks.contention.programs import KEYS_DEFAULT, KEYS_MAX, Programs
from benchmarks.contention.run import Figures, measured, plan_of
from benchmarks.driver.latency import percentile_us
from benchmarks.driver.one_at_a_time import load_test
from benchmarks.driver.place import add_place_options, check_number, check_place, placed
from benchmarks.driver.summary import LATE_US_MAX
from proof.chaos_app import app
from proof.cluster.child import ChildFailed
from styx.errors import ConfigurationError
from styx.model.limits import TIMEOUT_SECONDS_MAX
from styx.native.form import FORM, describe

APP: Final = "proof.chaos_app:app"
OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
SILENT_SHOWN_MAX: Final = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        check_place(options)
        check_number("--keys", options.keys, 1, KEYS_MAX)
        check_number("--seconds", options.seconds, 0.1, 3600)
        check_number("--warm-up", options.warm_up, 0, 3600)
        check_number("--timeout", options.timeout, 0.001, TIMEOUT_SECONDS_MAX)
        check_number("--bound", options.bound, 0.001, TIMEOUT_SECONDS_MAX)
        with load_test():
            figures = asyncio.run(_run(options))
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return USAGE
    except (ChildFailed, OSError) as error:
        print(error, file=sys.stderr)
        return FAILED
    print("\n".join(lines(figures, options.bound)))
    return FAILED if figures.silent or figures.wrong else OK


async def _run(options: argparse.Namespace) -> Figures:
    plan = plan_of(options.rate, options.warm_up, options.seconds, options.timeout, options.seed)
    programs = Programs(options.keys, options.seed)
    async with placed(options, app, APP) as place, place.deployment.open_client() as client:
        print(
            f"{options.rate:g} requests/s for {options.seconds:g} s, {options.keys} keys an operator, seed "
            f"{options.seed}, on {place.title}, {place.n_slots} slots"
        )
        print(f"CPython {platform.python_version()}, engine {describe(FORM)}", flush=True)
        return await measured(place, client, programs, plan)


def lines(figures: Figures, bound_s: float) -> list[str]:
    """The figures, and what is wrong."""
    percentiles = ", ".join(f"p{each:g} {_ms(percentile_us(figures.latency, each))}" for each in (50, 90, 99, 100))
    carried, answered = figures.carries, max(figures.carries.transactions, 1)
    found = [
        f"throughput   {figures.throughput:.1f} answered/s; {figures.sent} sent, "
        + ", ".join(f"{count} {outcome}" for outcome, count in sorted(figures.outcomes.items())),
        f"processor    {figures.cpu_s / answered * 1e3:.2f} ms a transaction",
        f"latency      {percentiles}; p99 {'below' if figures.p99_s < bound_s else 'NOT below'} {bound_s:g} s",
        f"carried      {carried.share:.1%} of the transactions, {carried.mean:.1f} times on average, median "
        f"{carried.median:g}, at most {carried.most}",
        f"epochs       {carried.epochs}, {carried.transactions / max(carried.epochs, 1):.1f} answered in each; "
        f"{figures.locked / answered:.1%} of the transactions through the lock phase",
    ]
    if percentile_us(figures.late, 99) > LATE_US_MAX:
        found.append("WARNING      the client itself was late, and latencies include that")
    if figures.silent:
        found.append(f"WRONG        {len(figures.silent)} requests have no reply:")
        found += [f"    {each}" for each in figures.silent[:SILENT_SHOWN_MAX]]
        left = len(figures.silent) - SILENT_SHOWN_MAX
        found += [f"    and {left} more"] if left > 0 else []
    found.append(f"WRONG        {figures.wrong}" if figures.wrong else "history      serializable, and complete")
    return found


def _ms(microseconds: int) -> str:
    return f"{microseconds / 1000:,.1f} ms"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit status 0: all is right, whatever the latency; 1: it is not, or a request has no reply; 2: an "
        "option is wrong",
    )
    add_place_options(parser)
    add = parser.add_argument
    add("--rate", type=float, default=100.0, metavar="N", help="requests a second (default %(default)g)")
    add("--seconds", type=float, default=20.0, metavar="N", help="how long requests are sent (default %(default)g)")
    add(
        "--warm-up", type=float, default=2.0, metavar="N", help="seconds before them, not counted (default %(default)g)"
    )
    add("--keys", type=int, default=KEYS_DEFAULT, metavar="N", help="of each of three operators (default %(default)s)")
    add("--seed", type=int, default=1, metavar="N", help="the same seed gives the same requests at the same times")
    add("--bound", type=float, default=1.0, metavar="SECONDS", help="what p99 is compared with (default 1)")
    add("--timeout", type=float, default=120.0, metavar="SECONDS", help="a reply that takes longer (default 120)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
