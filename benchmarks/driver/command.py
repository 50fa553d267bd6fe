"""The command line of a workload: `run`, `search`, `sweep`, `load`, `audit` and `plot`. A workload's `__main__` is

    if __name__ == "__main__":
        sys.exit(main("ycsbt", add_options, make_workload))

Exit status 0: done, and the audit passed. 1: it failed, replies were missed or came twice, or something broke. 2: an
option is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from benchmarks.driver import options as driver_options
from benchmarks.driver import sweep
from benchmarks.driver.accompanied import Company
from benchmarks.driver.attendant import Attended
from benchmarks.driver.clients import ClientFailed
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.choose import deployed
from benchmarks.driver.lossy import LossyApp
from benchmarks.driver.one_at_a_time import ends_in_order, run_load
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import COORDINATOR, Probe
from benchmarks.driver.reports import Progress
from benchmarks.driver.result import Result, SearchResult, write
from benchmarks.driver.search import THROUGHPUT_SHARE_MIN, Rates, RateSearch
from benchmarks.driver.session import Generators, MakeWorkload, Session, search
from benchmarks.driver.summary import ProgressLine, audit_lines, search_summary, summary
from benchmarks.driver.witness_file import read_witnesses, write_witnesses
from benchmarks.driver.worker_death import WorkerDeath, kill_and_replace
from benchmarks.driver.workload import Workload
from proof.cluster.child import ChildFailed
from styx.cli.serving import run_loop
from styx.errors import ConfigurationError, StyxError

AddOptions = Callable[[argparse.ArgumentParser], None]
"""Adds the workload's own options to the parser of each subcommand that needs the workload. `make_workload` makes the
workload from the parsed options, in client processes too. It is a function of a module, so that it is picklable. It
raises `styx.errors.ConfigurationError` for options that make no sense. The parsed options include the driver's, such as
`workers` and `slots`.
"""

ANOTHER_CAUSE: Final = (
    "It looks the same if nothing is loaded there, if it was loaded with other options, or if runs have changed it "
    "since whose witnesses the audit was not given."
)
"""The hint after a failed audit of data that this command has not loaded."""
OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130


def main(
    name: str, add_options: AddOptions, make_workload: MakeWorkload, arguments: Sequence[str] | None = None
) -> int:
    """Runs `python -m benchmarks.NAME`; returns the exit status."""
    return execute(parser(name, add_options).parse_args(arguments), make_workload)


def execute(options: argparse.Namespace, make_workload: MakeWorkload) -> int:
    """Runs the subcommand that `parser` has read; returns the exit status."""
    quieten()
    try:
        if options.command == "plot":
            from benchmarks.driver.charts import plot  # matplotlib loads slowly

            plot(options.kind, options.results, options.out, options.title)
            return OK
        driver_options.check(options)
        workload = make_workload(options)
        command = _COMMANDS[options.command](options, workload, make_workload)
        if options.command in _UNDER_LOAD:
            return run_load(command)
        with ends_in_order():
            return run_loop(command)
    except ConfigurationError as error:
        return _told(str(error), USAGE)
    except (StyxError, ClientFailed, ChildFailed, OSError) as error:
        return _told(f"{type(error).__name__}: {error}", FAILED)
    except KeyboardInterrupt:
        return _told("interrupted", INTERRUPTED)


def quieten() -> None:
    """Shows only errors, and no log lines of a library that reports each attempt to reach a broker."""
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


async def _run(options: argparse.Namespace, workload: Workload, make_workload: MakeWorkload) -> int:
    plan, death = driver_options.plan_of(options, options.rate), driver_options.worker_death_of(options)
    loss = driver_options.loss_of(options)
    lossy = None if loss is None else LossyApp(workload.app, loss)
    async with deployed(options, workload, lossy) as deployment:
        session = _session(options, workload, make_workload, deployment)
        await _load_unless_there(session, options)
        async with session.clients(plan, options.timeout) as clients, session.attended() as watching:
            since = await session.replies_end()
            result = await session.measure(clients, plan, _company(deployment, death))
            witnesses = await watching.whole(await clients.witnesses())
        if options.witness is not None:
            write_witnesses(options.witness, workload.name, witnesses)
        result.lost = None if lossy is None else lossy.lost
        if isinstance(workload, Attended):
            result.notes = workload.notes(result, witnesses)
        await _finish(session, result, witnesses, since, options)
    print(summary(result))
    if options.loaded and result.audit is not None and result.audit.violations:
        print(ANOTHER_CAUSE)
    return FAILED if _wrong(result) or result.missed else OK


async def _search(options: argparse.Namespace, workload: Workload, make_workload: MakeWorkload) -> int:
    rates = RateSearch(options.first_rate, options.precision, options.tries)
    return await _steps(options, workload, make_workload, rates, give_up_s=options.bound)


async def _sweep(options: argparse.Namespace, workload: Workload, make_workload: MakeWorkload) -> int:
    rates = driver_options.sweep_of(options)
    return await _steps(options, workload, make_workload, rates, throughput_share=sweep.THROUGHPUT_SHARE_MIN)


async def _steps(
    options: argparse.Namespace,
    workload: Workload,
    make_workload: MakeWorkload,
    rates: Rates,
    give_up_s: float | None = None,
    throughput_share: float = THROUGHPUT_SHARE_MIN,
) -> int:
    def plan_at(rate: float) -> LoadPlan:
        return driver_options.plan_of(options, rate, give_up_s)

    first = plan_at(rates.next_rate() or options.first_rate)
    async with deployed(options, workload) as deployment:
        session = _session(options, workload, make_workload, deployment)
        await _load_unless_there(session, options)
        async with session.clients(first, options.timeout) as clients, session.attended() as watching:
            since = await session.replies_end()
            result = await search(session, clients, rates, options.bound, plan_at, throughput_share)
            witnesses = await watching.whole(await clients.witnesses())
        await _finish(session, result, witnesses, since, options)
    print(search_summary(result))
    return FAILED if _wrong(result) else OK


async def _load(options: argparse.Namespace, workload: Workload, make_workload: MakeWorkload) -> int:
    _must_stay(options, "load")
    async with deployed(options, workload) as deployment:
        await _session(options, workload, make_workload, deployment).load()
    return OK


async def _audit(options: argparse.Namespace, workload: Workload, make_workload: MakeWorkload) -> int:
    _must_stay(options, "audit")
    witnesses = [witness for file in options.witness for witness in read_witnesses(file, workload.name)]
    async with deployed(options, workload) as deployment:
        audit = await _session(options, workload, make_workload, deployment).audit(witnesses)
    print("\n".join(audit_lines(audit)))
    if audit.violations:
        print(ANOTHER_CAUSE)
    return FAILED if audit.violations else OK


_UNDER_LOAD: Final = ("run", "search", "sweep")
_COMMANDS: Final = {"run": _run, "search": _search, "sweep": _sweep, "load": _load, "audit": _audit}


async def _load_unless_there(session: Session, options: argparse.Namespace) -> None:
    if not options.loaded:
        await session.load()


async def _finish(
    session: Session,
    result: Result | SearchResult,
    witnesses: list[object],
    since: dict[int, int],
    options: argparse.Namespace,
) -> None:
    result.duplicated = await session.duplicated(since)
    if not options.no_audit:
        _say("auditing")
        result.audit = await session.audit(witnesses)
    if options.out is not None:
        write(options.out, result)


def _wrong(result: Result | SearchResult) -> bool:
    return bool(result.duplicated) or (result.audit is not None and bool(result.audit.violations))


def _session(
    options: argparse.Namespace, workload: Workload, make_workload: MakeWorkload, deployment: Deployment
) -> Session:
    line = ProgressLine()

    def tell(progress: Progress, probe: Probe) -> None:
        _say(line.line(progress, probe))

    return Session(
        workload,
        Generators(make_workload, options),
        deployment,
        (lambda _, __: None) if getattr(options, "quiet", False) else tell,
        _say,
    )


def _company(deployment: Deployment, death: WorkerDeath | None) -> Company | None:
    if death is None:
        return None
    assert deployment.workers is not None, "options refuse it where workers cannot be killed"
    (coordinator_url,) = deployment.urls()[COORDINATOR]
    return partial(kill_and_replace, deployment.workers, coordinator_url, death)


def _must_stay(options: argparse.Namespace, command: str) -> None:
    if options.on == "cluster" or (options.on == "embedded" and options.data_dir is None):
        raise ConfigurationError(
            f"`{command}` needs a deployment that stays: --data-dir, or --on kafka://HOST:PORT or http://HOST:PORT. "
            "`run` loads and audits by itself"
        )


def parser(name: str, add_options: AddOptions) -> argparse.ArgumentParser:
    """The parser of all subcommands of the workload `name`."""
    top = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=f"The workload {name}: open-loop load at a fixed rate, latencies from when requests were due, and "
        "an audit of the state against the replies. Without options it runs an engine in this process.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="load, run at one rate, audit")
    look_for = commands.add_parser("search", help="load, find the highest rate with p99 under a bound, audit")
    driver_options.add_search_options(look_for)
    sweep_over = commands.add_parser("sweep", help="load, measure at higher and higher rates until saturation, audit")
    driver_options.add_sweep_options(sweep_over)
    load = commands.add_parser("load", help="only put the data in")
    audit = commands.add_parser("audit", help="only compare the state with what clients have seen")
    driver_options.add_audit_options(audit)
    for command in (run, look_for, sweep_over):
        driver_options.add_load_options(command)
    driver_options.add_run_options(run)
    for command in (load, audit):
        driver_options.add_load_command_options(command)
    for command in (run, look_for, sweep_over, load, audit):
        driver_options.add_deployment_options(command)
        add_options(command)
    driver_options.add_plot_options(commands.add_parser("plot", help="draw a chart of results"))
    return top


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _told(text: str, status: int) -> int:
    _say(text)
    return status
