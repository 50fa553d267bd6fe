"""`python -m benchmarks.marketplace.race`: one cart is checked out 100,000 times in races, and the audit judges.

It ends with 0 if the audit is green, else with 1.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from benchmarks.driver.one_at_a_time import load_test
from benchmarks.marketplace.audit.audit import audit, checked
from benchmarks.marketplace.race.race import Counts, raced


def main(words: list[str] | None = None) -> int:
    """Runs it, and prints what was checked and what was found."""
    options = _options(words)
    began_s = time.monotonic()

    def tell(counts: Counts) -> None:
        rate = counts.checkouts / (time.monotonic() - began_s)
        print(f"{counts.checkouts} checkouts, {rate:.0f}/s: {counts.orders} orders", file=sys.stderr, flush=True)

    with load_test():
        race, run = asyncio.run(raced(options.checkouts, options.seed, options.directory, tell))
    seconds, counts = time.monotonic() - began_s, race.counts
    print(f"race         {counts.checkouts} checkouts of one cart in {seconds:.0f} s, each sent twice at once")
    print(f"ended        {counts.orders} orders, {counts.refused} with nothing in stock, {counts.repeated} repetitions")
    print(f"against it   {', '.join(f'{count} {kind}' for kind, count in race.kinds.items())}")
    violations = audit(run)
    for line in checked(run):
        print(f"audit        {line}")
    for violation in violations:
        print(f"VIOLATION    {violation}")
    print(f"audit        {'FAILED' if violations else 'passed'}")
    return 1 if violations else 0


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.marketplace.race", description=__doc__)
    parser.add_argument("--checkouts", type=_at_least_one, default=100_000, metavar="N", help="(default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(default %(default)s)")
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="where the engine's files are, for the time of it"
    )
    return parser.parse_args(words)


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1, got {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
