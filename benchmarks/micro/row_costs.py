"""`python -m benchmarks.micro.row_costs [PAIR…]`: what an operation on a row costs, beside the same written by hand:
with an entity for each row, which calls reach, and an entity for each value of an index.

The two of a pair run in turns in one process, several times. Figures are processor time of a transaction, the median of
the runs with the range; what is told of a pair is the median of the ratios of its runs. With `--instructions` also the
machine instructions, by valgrind, which do not depend on other work on the machine.
"""

from __future__ import annotations

import argparse
import platform
import statistics
from typing import Final, NamedTuple

from benchmarks.micro.instructions import per_transaction
from benchmarks.micro.rows import ROWS
from benchmarks.micro.timing import figure, time_row
from styx.native.form import FORM, describe


class Pair(NamedTuple):
    """Two rows of the micro-benchmarks that do the same; `transactions` of each run."""

    row: str
    by_hand: str
    transactions: int = 1_000


PAIRS: Final = {
    "get": Pair("row_get", "call_get"),
    "put": Pair("row_put", "call_put"),
    "insert": Pair("row_insert", "call_insert"),
    "update": Pair("row_update", "call_update"),
    "unique": Pair("row_unique", "call_unique"),
    "app_wide": Pair("row_app_wide", "call_app_wide"),
    "scan_50": Pair("row_scan_50", "call_scan_50", 200),
    "scan_1000": Pair("row_scan_1000", "call_scan_1000", 20),
}
"""By the name that the command takes."""
AT_ONCE: Final = 100
"""Requests that arrive together."""


class Costs(NamedTuple):
    """Microseconds of a transaction in each run."""

    row: list[float]
    by_hand: list[float]

    @property
    def ratios(self) -> list[float]:
        """How often a transaction on rows goes into one by hand, run by run."""
        return [by_hand / row for row, by_hand in zip(self.row, self.by_hand, strict=True)]


def measure(pair: Pair, runs: int) -> Costs:
    """Times the two of a pair in turns."""
    costs = Costs([], [])
    for _ in range(runs):
        for name, into in ((pair.row, costs.row), (pair.by_hand, costs.by_hand)):
            seconds, _, _ = time_row(ROWS[name], pair.transactions, AT_ONCE)
            into.append(seconds / pair.transactions * 1e6)
    return costs


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro.row_costs", description=__doc__)
    parser.add_argument("pairs", nargs="*", metavar="PAIR", help=f"of {', '.join(PAIRS)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--instructions", action="store_true", help="also count machine instructions, by valgrind")
    options = parser.parse_args()
    unknown = [name for name in options.pairs if name not in PAIRS]
    if unknown:
        parser.error(f"there is no pair {unknown[0]!r}; there are {', '.join(PAIRS)}")
    if options.runs < 1:
        parser.error(f"--runs is 1 or more, got {options.runs}")
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"{interpreter}, {platform.machine()}, engine {describe(FORM)}", flush=True)
    for name in options.pairs or PAIRS:
        pair = PAIRS[name]
        costs = measure(pair, options.runs)
        print(
            f"{name}: rows {figure(costs.row)} µs, by hand {figure(costs.by_hand)} µs a transaction, "
            f"{statistics.median(costs.ratios):.2f} times",
            flush=True,
        )
        if options.instructions:
            row, by_hand = (per_transaction(each, AT_ONCE) for each in (pair.row, pair.by_hand))
            print(f"  instructions: {row:,.0f} and {by_hand:,.0f}, {by_hand / row:.2f} times", flush=True)


if __name__ == "__main__":
    main()
