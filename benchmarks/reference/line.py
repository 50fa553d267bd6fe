"""A reference line: the same requests from the same clients, at given rates and then at the highest rate with p99 under
a bound. It uses the driver. The caller gives the deployment.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from benchmarks.driver import options as driver_options
from benchmarks.driver.clients import ClientFailed, Clients
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.one_at_a_time import run_load
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Probe
from benchmarks.driver.reports import Progress
from benchmarks.driver.result import SearchResult, write
from benchmarks.driver.search import GivenFirst, RateSearch
from benchmarks.driver.session import Generators, MakeWorkload, Session, search
from benchmarks.driver.summary import ProgressLine, search_summary
from benchmarks.driver.workload import Audit, Workload
from benchmarks.ycsbt.options import add_options as add_workload_options
from proof.cluster.child import ChildFailed
from styx.errors import ConfigurationError, StyxError

OK: Final = 0
FAILED: Final = 1
"""Something is wrong with what was seen, or broke."""
USAGE: Final = 2
"""An option is wrong, or something is not installed."""
INTERRUPTED: Final = 130
RATES_MAX: Final = 100
"""Given rates of one command."""


def add_options(parser: argparse.ArgumentParser, rates: str) -> None:
    """The options of a line: `rates` is the default of --rates."""
    add = parser.add_argument
    add(
        "--rates",
        default=rates,
        metavar="N,N,...",
        help="requests a second, measured one after the other before the search; empty for none (default %(default)s)",
    )
    add("--no-search", action="store_true", help="only the given rates")
    driver_options.add_search_options(parser)
    driver_options.add_load_options(parser)
    add_workload_options(parser)


async def measure_line(
    options: argparse.Namespace,
    make_workload: MakeWorkload,
    deployed: AbstractAsyncContextManager[Deployment],
    note: Callable[[SearchResult], Awaitable[None]],
) -> int:
    """Measures on `deployed`, which has its data already; the exit status.

    `note` is awaited when all clients have ended, to add to the result what else there is to say. Raises
    `ConfigurationError` and what the deployment raises.
    """
    rates = check(options)
    workload = make_workload(options)
    first = driver_options.plan_of(options, rates[0] if rates else options.first_rate)
    async with deployed as deployment:
        session = _session(options, workload, make_workload, deployment)
        async with session.clients(first, options.timeout) as clients:
            since = await session.replies_end()
            result = await _measured(session, clients, rates, options)
            witnesses = await clients.witnesses()
        result.duplicated = await session.duplicated(since)
        if not options.no_audit:
            result.audit = await session.audit(witnesses)
        await note(result)
    if options.out is not None:
        write(options.out, result)
    print("\n".join([search_summary(result), *processor_lines(result)]))
    return FAILED if result.duplicated or (result.audit is not None and result.audit.violations) else OK


async def _measured(
    session: Session, clients: Clients, rates: list[float], options: argparse.Namespace
) -> SearchResult:
    searching = RateSearch(options.first_rate, options.precision, options.tries)

    def plan_at(rate: float) -> LoadPlan:
        return driver_options.plan_of(options, rate, give_up_s=options.bound)

    chosen = GivenFirst(rates, searching, goes_on=not options.no_search)
    return await search(session, clients, chosen, options.bound, plan_at)


def check(options: argparse.Namespace) -> list[float]:
    """The given rates; raises `ConfigurationError` for options that do not fit together."""
    if options.loaded:
        raise ConfigurationError("--loaded: what a reference line runs on is made anew each time")
    rates = rates_of(options.rates)
    if options.no_search and not rates:
        raise ConfigurationError("--no-search without --rates leaves nothing to measure")
    for rate in (*rates, options.first_rate):
        driver_options.plan_of(options, rate)
    return rates


def rates_of(text: str) -> list[float]:
    """The rates of `--rates`; raises `ConfigurationError`."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    try:
        rates = [float(word) for word in words]
    except ValueError:
        raise ConfigurationError(f"--rates {text}: these are numbers with commas in between") from None
    if len(rates) > RATES_MAX:
        raise ConfigurationError(f"--rates: {RATES_MAX} at most, got {len(rates)}")
    return rates


def processor_lines(result: SearchResult) -> list[str]:
    """Processor time a transaction at each rate, for people."""
    roles = sorted({role for step in result.steps for role in step.result.cpu_us})
    if not roles:
        return []
    lines = ["processor time in µs a transaction:", f"{'rate/s':>9} " + " ".join(f"{role:>20}" for role in roles)]
    for step in result.steps:
        each = (f"{step.result.cpu_us[role]:>20.1f}" if role in step.result.cpu_us else f"{'-':>20}" for role in roles)
        lines.append(f"{step.rate:>9.0f} " + " ".join(each))
    return lines


def run_command(measuring: Coroutine[Any, Any, int]) -> int:
    """Runs a command's coroutine to its end; the exit status, with a word on what went wrong."""
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        return run_load(measuring)
    except ConfigurationError as error:
        say(str(error))
        return USAGE
    except (StyxError, ClientFailed, ChildFailed, OSError) as error:
        say(f"{type(error).__name__}: {error}")
        return FAILED
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED


def add_to_audit(result: SearchResult, text: str) -> None:
    """Something else that was looked at."""
    audit = result.audit or Audit([], [])
    result.audit = Audit([*audit.checked, text], audit.violations)


def _session(
    options: argparse.Namespace, workload: Workload, make_workload: MakeWorkload, deployment: Deployment
) -> Session:
    line = ProgressLine()

    def tell(progress: Progress, probe: Probe) -> None:
        if not options.quiet:
            say(line.line(progress, probe))

    return Session(workload, Generators(make_workload, options), deployment, tell, say)


def say(text: str) -> None:
    """What happens, as opposed to what was measured."""
    print(text, file=sys.stderr, flush=True)
