"""`python -m examples.bank_audit`: options, the last lines, and the exit status."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from typing import Final

from examples.bank_audit.scenario import BankAudit, NoBank, NotReached, Plan, Result
from styx.cli.demo.display import Display, display
from styx.cli.serving import run_loop
from styx.errors import ConfigurationError

HOLDS: Final = 0
VIOLATED: Final = 1
USAGE: Final = 2
NOT_REACHED: Final = 3
INTERRUPTED: Final = 130
CLIENTS_MAX: Final = 256
"""The number of a client's connections."""
SECONDS_MAX: Final = 7 * 86_400.0
ACCOUNTS_MAX: Final = 10_000
WAIT_SECONDS_MAX: Final = 600.0
_EPILOG: Final = """\
exit status:
  0    the audit holds
  1    it does not: the lines marked WRONG say what was violated
  2    an option is wrong, or what answers is not examples.bank:app
  3    no bank answered in time
Ctrl-C or SIGTERM ends the transfers; what was done by then is audited. A second one ends at once.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name, low, high in (
        ("clients", 1, CLIENTS_MAX),
        ("seconds", 0.1, SECONDS_MAX),
        ("accounts", 2, ACCOUNTS_MAX),
        ("wait", 0.1, WAIT_SECONDS_MAX),
    ):
        if not low <= getattr(options, name) <= high:
            parser.error(f"--{name} is a number from {low:g} to {high:g}, got {getattr(options, name):g}")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    plan = Plan(options.url, options.clients, options.seconds, options.accounts, options.wait)
    try:
        with display() as shown:
            result = run_loop(_run(plan, shown))
            report(result, shown)
    except NotReached as error:
        return _told(error, NOT_REACHED)
    except (NoBank, ConfigurationError) as error:
        return _told(error, USAGE)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _told("interrupted: nothing was audited", INTERRUPTED)
    return HOLDS if _holds(result) else VIOLATED


def report(result: Result, shown: Display) -> None:
    """The last lines: requests and replies, then each rule, then the verdict."""
    totals = result.totals
    shown.step(
        "sent",
        f"{totals.answered:,} requests: {totals.committed:,} committed, {totals.aborted:,} aborted for lack of funds",
    )
    shown.step(
        "speed",
        f"{result.transfers / result.load_seconds:,.0f} transfers/s; slowest reply {totals.slowest_s:.2f} s; longest "
        f"pause without replies {totals.pause_s:.2f} s, {totals.pause_at_s:.1f} s after the start",
    )
    for check in result.checks:
        shown.step("ok" if check.holds else "WRONG", f"{check.name}: {check.detail}")
    shown.step("verdict", "the audit holds" if _holds(result) else "the audit does NOT hold")


def _holds(result: Result) -> bool:
    return all(check.holds for check in result.checks)


async def _run(plan: Plan, shown: Display) -> Result:
    audit = BankAudit(plan, shown)
    running = asyncio.ensure_future(audit.run())

    def told() -> None:
        if audit.stop.is_set():
            running.cancel()
        audit.stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
    try:
        return await running
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.bank_audit",
        description="Audits a running deployment of examples.bank:app, beside whatever else happens there: opens "
        "accounts of its own, transfers money between them, and proves from the replies that every request took "
        "effect once, in the order that replies claim, and that no money was made or lost.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--url", required=True, help="the deployment's gateway, http://HOST:PORT")
    parser.add_argument("--clients", type=int, default=32, metavar="N", help="clients that transfer (default 32)")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="how long they do (default 10)")
    parser.add_argument("--accounts", type=int, default=500, metavar="N", help="accounts to open (default 500)")
    parser.add_argument(
        "--wait",
        type=float,
        default=120.0,
        metavar="S",
        help="how long the deployment is waited for, and any one reply, while its request is sent again (default 120)",
    )
    return parser


def _told(text: object, status: int) -> int:
    print(text, file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
