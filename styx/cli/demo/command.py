"""`styx demo`: options, the last lines, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from styx.cli.demo.display import Display
    from styx.cli.demo.scenario import Result

ACCOUNTS_MAX: Final = 100_000
SECONDS_MAX: Final = 3_600.0
CRASHES_MAX: Final = 100


EXAMPLES: Final = """\
Examples:
  styx demo
  styx demo --seconds 30 --crashes 5 --accounts 100
  styx demo --data-dir /tmp/bank

Exit codes:
  0    the audit holds
  1    it does not, or the engine failed; the data directory is kept and named
  2    an option is wrong
"""


def demo(
    *,
    seconds: Annotated[float, Parameter(help="Seconds of load, at least 1.", env_var="STYX_SECONDS")] = 8.0,
    accounts: Annotated[int, Parameter(help="Accounts to open.", env_var="STYX_ACCOUNTS")] = 1_000,
    crashes: Annotated[int, Parameter(help="Times the engine is killed.", env_var="STYX_CRASHES")] = 1,
    seed: Annotated[int, Parameter(help="Decides who pays whom how much.", env_var="STYX_SEED")] = 1,
    data_dir: Annotated[
        Path | None,
        Parameter(
            help="New or empty directory to keep log and snapshots in; without it, a temporary one.",
            env_var="STYX_DATA_DIR",
        ),
    ] = None,
) -> int:
    """Run an app, crash it under load, recover it and prove that nothing was lost.

    Serves a bank in a process of its own, opens accounts and transfers money
    between a few hot ones, over HTTP. In the middle the process is killed with
    SIGKILL and started again; calls that got no reply are sent again with their
    idempotency keys. In the end an audit runs every call again, one by one and
    without the engine, and compares every reply and every balance.
    Nothing else is needed, and nothing is left behind.
    """
    from styx.cli.exit_codes import FAILURE, SUCCESS

    _check(seconds, accounts, crashes, data_dir)

    from styx.cli.demo.display import display
    from styx.cli.demo.scenario import Demo, Plan, demo_directory
    from styx.cli.serving import run_loop

    with demo_directory(data_dir) as directory, display() as shown:
        plan = Plan(seconds, accounts, seed, crashes, directory.path)
        result = run_loop(Demo(plan, shown).run())
        report(result, shown)
        directory.keep = data_dir is not None or not _holds(result)
    return SUCCESS if _holds(result) else FAILURE


def report(result: Result, shown: Display) -> None:
    """Prints the last lines: the calls and their outcomes, the speed, the audit and its verdict."""
    journal = result.journal
    shown.step(
        "sent",
        f"{len(journal.entries):,} calls: {journal.committed:,} committed, {journal.aborted:,} aborted for lack of "
        f"funds; {journal.resent:,} sent again after a crash",
    )
    recoveries = ", ".join(f"{seconds:.2f}" for seconds in result.recovery_seconds)
    shown.step(
        "speed", f"{result.transfers / result.load_seconds:,.0f} transfers/s; from SIGKILL to serving {recoveries} s"
    )
    for check in result.checks:
        shown.step("ok" if check.holds else "WRONG", f"{check.name}: {check.detail}")
    shown.step("verdict", "the audit holds" if _holds(result) else "the audit does NOT hold")


def _holds(result: Result) -> bool:
    return all(check.holds for check in result.checks)


def _check(seconds: float, accounts: int, crashes: int, data_dir: Path | None) -> None:
    from styx.cli.exit_codes import usage_error

    if not 1 <= seconds <= SECONDS_MAX:
        raise usage_error(f"--seconds is a number from 1 to {SECONDS_MAX:g}, got {seconds:g}")
    if not 2 <= accounts <= ACCOUNTS_MAX:
        raise usage_error(f"--accounts is a number from 2 to {ACCOUNTS_MAX}, got {accounts}")
    if not 1 <= crashes <= CRASHES_MAX:
        raise usage_error(f"--crashes is a number from 1 to {CRASHES_MAX}, got {crashes}")
    if data_dir is not None and data_dir.exists() and (not data_dir.is_dir() or any(data_dir.iterdir())):
        raise usage_error(f"--data-dir {data_dir} is not empty: the demo needs a new or an empty directory")
