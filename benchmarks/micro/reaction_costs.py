"""`python -m benchmarks.micro.reaction_costs [PAIR…]`: what reactions cost, beside the same by requests and calls: a
call after the commit beside two requests, an event beside an answer, and subscriptions beside calls.

The two of a pair run in turns in one process, several times. Figures are processor time, the median of the runs with
the range; what is told of a pair is the median of the ratios of its runs. With `--instructions` also the machine
instructions, by valgrind, which do not depend on other work on the machine. Nothing of the log is part of it.

With `--group RATE` it instead sends so many requests a second, for some seconds, to one embedded engine. Each emits an
event of one group, whose order is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import resource
import statistics
import tempfile
import time
from typing import Final, NamedTuple

from benchmarks.micro.instructions import per_transaction
from benchmarks.micro.reacting import app, emit_for_a_group, ledger, order, written
from benchmarks.micro.rows import ROWS
from benchmarks.micro.timing import figure, time_row
from styx import embedded
from styx.native.form import FORM, describe


class Pair(NamedTuple):
    """Two rows of the micro-benchmarks. `of` transactions of the second do what one of the first does."""

    row: str
    beside: str
    of: int = 1


PAIRS: Final = {
    "after_commit": Pair("give_later", "two_requests", 2),
    "event": Pair("emit", "answer"),
    "heard_at_once": Pair("heard_at_once", "call_at_once"),
    "heard_later": Pair("heard_later", "call_later"),
    "heard_of_one": Pair("heard_of_one", "call_later"),
    "heard_in_order": Pair("heard_in_order", "call_later"),
}
"""By the name that the command takes."""
TRANSACTIONS: Final = 2_000
AT_ONCE: Final = 100
"""Requests that arrive together."""
GROUP_SECONDS: Final = 5
TICK_SECONDS: Final = 0.01
"""How often requests are sent."""
UNANSWERED_MAX: Final = 20_000
"""Requests without an answer with which nothing more is sent: the engine does not keep up."""


class Costs(NamedTuple):
    """Microseconds in each run."""

    row: list[float]
    beside: list[float]

    @property
    def ratios(self) -> list[float]:
        """How often the second goes into the first, run by run."""
        return [row / beside for row, beside in zip(self.row, self.beside, strict=True)]


def measure(pair: Pair, runs: int, transactions: int = TRANSACTIONS) -> Costs:
    """Times the two of a pair in turns."""
    costs = Costs([], [])
    for _ in range(runs):
        for name, of, into in ((pair.row, 1, costs.row), (pair.beside, pair.of, costs.beside)):
            seconds, _, _ = time_row(ROWS[name], of * transactions, AT_ONCE)
            into.append(seconds / transactions * 1e6)
    return costs


# One group at a rate ---------------------------------------------------------------------------------------


class Rate(NamedTuple):
    """`handled` events a second until the last one was, processor time of one in seconds with its request and the log,
    how long the last one took behind the last request, and the seconds from an event's request to its answer (median).
    `missing` were not handled.
    """

    handled: float
    cpu: float
    behind: float
    answered: float
    missing: int


def one_group(rate: int, seconds: float, directory: str) -> Rate:
    """Sends `rate` requests a second to an embedded engine that keeps its log in a directory."""
    return asyncio.run(_one_group(rate, seconds, directory))


async def _one_group(rate: int, seconds: float, directory: str) -> Rate:
    async with embedded(app, directory) as client:
        taken: list[float] = []

        async def ask(number: int) -> None:
            begun = time.perf_counter()
            await client.call(order, number % 1_000, emit_for_a_group, number)
            taken.append(time.perf_counter() - begun)

        asked = list[asyncio.Task[None]]()
        begun, cpu = time.perf_counter(), _cpu_seconds()
        while (now := time.perf_counter() - begun) < seconds:
            due = int(now * rate)
            if len(asked) - len(taken) < UNANSWERED_MAX:
                asked += [asyncio.create_task(ask(number)) for number in range(len(asked), due)]
            await asyncio.sleep(TICK_SECONDS)
        await asyncio.gather(*asked)
        sent = time.perf_counter()
        while client.engine.worker.given_for_later:  # noqa: ASYNC110 - an engine's state tells nobody
            await asyncio.sleep(TICK_SECONDS)
        ended, spent = time.perf_counter(), _cpu_seconds() - cpu
        count = len(asked)
        found = await asyncio.gather(*[client.call(ledger, key, written) for key in range(1_000)])
        return Rate(count / (ended - begun), spent / count, ended - sent, statistics.median(taken), count - sum(found))


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro.reaction_costs", description=__doc__)
    parser.add_argument("pairs", nargs="*", metavar="PAIR", help=f"of {', '.join(PAIRS)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--instructions", action="store_true", help="also count machine instructions, by valgrind")
    parser.add_argument("--group", type=int, metavar="RATE", help="events a second of one group, instead")
    options = parser.parse_args()
    unknown = [name for name in options.pairs if name not in PAIRS]
    if unknown:
        parser.error(f"there is no pair {unknown[0]!r}; there are {', '.join(PAIRS)}")
    if options.runs < 1:
        parser.error(f"--runs is 1 or more, got {options.runs}")
    if options.group is not None and options.group < 1:
        parser.error(f"--group is 1 or more, got {options.group}")
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"{interpreter}, {platform.machine()}, engine {describe(FORM)}", flush=True)
    if options.group is not None:
        with tempfile.TemporaryDirectory() as directory:
            told = one_group(options.group, GROUP_SECONDS, directory)
        print(
            f"one group: {told.handled:,.0f} events a second of {options.group:,}, {told.cpu * 1e6:.0f} µs of "
            f"processor time each with its request and the log; answers after {told.answered * 1e3:.0f} ms (median), "
            f"the last event handled {told.behind * 1e3:.0f} ms behind the last answer, {told.missing} not handled once"
        )
        return
    for name in options.pairs or PAIRS:
        pair = PAIRS[name]
        costs = measure(pair, options.runs)
        print(
            f"{name}: {figure(costs.row)} µs, beside {figure(costs.beside)} µs, "
            f"{statistics.median(costs.ratios):.2f} times",
            flush=True,
        )
        if options.instructions:
            row, beside = per_transaction(pair.row, AT_ONCE), pair.of * per_transaction(pair.beside, AT_ONCE)
            print(f"  instructions: {row:,.0f} and {beside:,.0f}, {row / beside:.2f} times", flush=True)


if __name__ == "__main__":
    main()
