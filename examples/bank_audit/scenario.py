"""The audit from start to end: reach the bank, open accounts, transfer, ask for old replies and for every balance.

This module has the order of events; the modules beside it carry them out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import styx
from examples.bank import app
from examples.bank_audit import findings as rules
from examples.bank_audit.clients import REPLY_SECONDS, Clients, Totals
from examples.bank_audit.findings import Findings
from examples.bank_audit.serial_order import SerialOrder
from examples.bank_audit.workload import HOT_ACCOUNTS, Accounts, Call
from styx.cli.demo.audit import Check
from styx.cli.demo.display import Display
from styx.client.base import Client
from styx.client.credential import from_environment
from styx.errors import RequestRejected
from styx.messages import Reply

ASKED_AT_END: Final = 200
"""The number of last requests whose replies are requested again after the transfers."""
TICK_SECONDS: Final = 0.25
REACH_SECONDS: Final = 0.25
"""Between two attempts to reach the bank."""
_PROBE: Final = "audit-nobody"


class Plan(NamedTuple):
    """`clients` clients make `seconds` of load on `accounts` accounts. No wait is longer than `wait_s`."""

    url: str
    clients: int
    seconds: float
    accounts: int
    wait_s: float


class Result(NamedTuple):
    """The checks, the counts, and the seconds of load."""

    checks: list[Check]
    totals: Totals
    load_seconds: float
    transfers: int


class NotReached(Exception):
    """No bank answered in time; the message gives the reason."""


class NoBank(Exception):
    """The deployment is not `examples.bank:app`; the message quotes its answer."""


class BankAudit:
    """One run of the plan. `stop` ends the transfers early; the audit follows as usual. `order` is the order checked so
    far, for others to read.
    """

    def __init__(self, plan: Plan, display: Display) -> None:
        self.stop = asyncio.Event()
        self._plan = plan
        self._display = display
        self._findings = Findings()
        self.order = SerialOrder(self._findings)
        self._accounts = Accounts(plan.accounts)
        self._balances: dict[str, int] = {}

    async def run(self) -> Result:
        """Runs all steps. Raises `NotReached`, `NoBank` and `styx.ConfigurationError`."""
        plan, accounts, say = self._plan, self._accounts, self._display.step
        async with styx.connect(plan.url, app, **from_environment(plan.url)) as client:
            await self._reach(client)
            clients = Clients(
                client,
                accounts.prefix,
                plan.clients,
                self.order,
                self._findings,
                plan.wait_s,
                lambda why: say("again", f"requests are sent again: {why}"),
            )
            await clients.send_all(accounts.openings())
            say("accounts", f"{plan.accounts:,} opened at {plan.url}, called {accounts.prefix}-…")
            say("load", f"{plan.clients} clients transfer money, most of it between {HOT_ACCOUNTS} hot accounts")
            clients.totals.begin()
            before, began_s = clients.totals.answered, time.monotonic()
            await self._load(clients, began_s)
            load_seconds, transfers = time.monotonic() - began_s, clients.totals.answered - before
            pause = clients.totals.pause_s, clients.totals.pause_at_s, clients.totals.slowest_s
            if not self._findings:
                say("audit", "old replies and all balances are asked for")
                await clients.ask_again(ASKED_AT_END)
                await clients.send_all(accounts.questions(), self._told_balance)
            clients.totals.pause_s, clients.totals.pause_at_s, clients.totals.slowest_s = pause
        return Result(self._checks(clients.totals), clients.totals, load_seconds, transfers)

    async def _reach(self, client: Client) -> None:
        """Returns when the bank has answered that an account which does not exist cannot pay."""
        began_s, told = time.monotonic(), ""
        while True:
            try:
                await client.call("account", _PROBE, "transfer", _PROBE, 1, timeout=REPLY_SECONDS)
            except styx.TransactionAborted:
                return
            except (ConnectionError, TimeoutError, RequestRejected) as error:
                code = getattr(error, "code", "unavailable")
                if code not in ("unavailable", "overloaded"):
                    raise NoBank(f"what answers at {self._plan.url} is not examples.bank:app: {error}") from None
                why = str(error) or type(error).__name__
            else:
                raise NoBank(f"what answers at {self._plan.url} is not examples.bank:app: it pays without money")
            if time.monotonic() - began_s > self._plan.wait_s:
                raise NotReached(f"no bank answered at {self._plan.url} within {self._plan.wait_s:g} s: {why}")
            if why != told:
                self._display.step("waiting", why)
                told = why
            await asyncio.sleep(REACH_SECONDS)

    async def _load(self, clients: Clients, began_s: float) -> None:
        telling = asyncio.create_task(self._tell(clients.totals, began_s))
        try:
            await clients.send_all(self._transfers(began_s))
        finally:
            telling.cancel()

    def _transfers(self, began_s: float) -> Iterator[Call]:
        for call in self._accounts.transfers():
            if self.stop.is_set() or time.monotonic() - began_s >= self._plan.seconds:
                return
            yield call

    async def _tell(self, totals: Totals, began_s: float) -> None:
        while True:
            answered, at_s = totals.answered, time.monotonic()
            await asyncio.sleep(TICK_SECONDS)
            now_s = time.monotonic()
            self._display.progress(
                min((now_s - began_s) / self._plan.seconds, 1.0),
                f"{totals.committed:,} committed, {totals.aborted:,} aborted, "
                f"{(totals.answered - answered) / (now_s - at_s):,.0f}/s, {totals.sent_again:,} sent again, "
                f"{self.order.replayed:,} checked",
            )

    def _told_balance(self, call: Call, reply: Reply) -> None:
        self._balances[call.key] = reply.result if isinstance(reply.result, int) else 0

    def _checks(self, totals: Totals) -> list[Check]:
        """The findings, one for each rule. A rule is left out if an earlier violation prevented its check."""
        complete = len(self._balances) == self._plan.accounts
        held = sum(self._balances.values())
        if complete and held != self._accounts.paid_in:
            self._findings.violated(rules.MONEY, f"{self._accounts.paid_in:,} was paid in, {held:,} is there")
        holds = {
            rules.ANSWERED: f"{totals.answered:,} requests, one reply each; {totals.sent_again:,} were sent again",
            rules.REAL_TIME: "every reply's place is behind those of all replies that were there when it was asked for",
            rules.REPLIES_KEPT: f"{totals.asked_again:,} requests were repeated after their reply: the same one came",
            rules.SERIAL_ORDER: f"{self.order.replayed:,} requests run again one by one, in (epoch, phase, tid) "
            "order: every reply is the same",
            rules.BALANCES: f"{len(self._balances):,} accounts hold what they hold in the serial execution",
            rules.MONEY: f"{held:,} is there, as was paid in",
        }
        found = [(rule, text, self._findings.of(rule)) for rule, text in holds.items()]
        return [Check(rule, why is None, why or text) for rule, text, why in found if why is not None or complete]
