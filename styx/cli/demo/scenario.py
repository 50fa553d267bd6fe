"""The demo from start to end, and its data directory: open accounts, transfer, kill the engine, recover, audit."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import styx
from styx.cli.demo.audit import Check, audit
from styx.cli.demo.bank import Call, balances, openings, transfers
from styx.cli.demo.display import Display
from styx.cli.demo.engine_process import EngineProcess
from styx.cli.demo.senders import SENDERS, Journal, Senders, together
from styx.cli.exit_codes import CommandFailed
from styx.embedded_engine.options import N_SLOTS_DEFAULT
from styx.testing.recorded_history import read_history_of

SNAPSHOT_SECONDS: Final = 2.0
"""Short beside the demo's load, so that a recovery has a snapshot to load and a log to replay."""
ASKED_AGAIN_MAX: Final = 200
"""Calls answered just before a crash that are sent once more after it."""
TICK_SECONDS: Final = 0.1


class Plan(NamedTuple):
    """The options: `seconds` of load, the number of `accounts`, and `crashes` at equal distances."""

    seconds: float
    accounts: int
    seed: int
    crashes: int
    data_dir: Path


class Result(NamedTuple):
    """The journal, the audit's checks, the number of transfers answered in `load_seconds` with the engine up, and the
    seconds of each recovery, from the kill to serving again.
    """

    journal: Journal
    checks: list[Check]
    transfers: int
    load_seconds: float
    recovery_seconds: list[float]


@dataclass(slots=True)
class DemoDirectory:
    """An existing directory; `keep` says whether it stays at the end. It stays after an error."""

    path: Path
    keep: bool = True


@contextmanager
def demo_directory(wanted: Path | None) -> Iterator[DemoDirectory]:
    """The data directory meanwhile: `wanted`, made if it is missing, else a new temporary directory."""
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
    directory = DemoDirectory(Path(tempfile.mkdtemp(prefix="styx-demo-")) if wanted is None else wanted)
    try:
        yield directory
    except KeyboardInterrupt:
        directory.keep = wanted is not None
        raise
    finally:
        if directory.keep:
            print(f"The data is kept in {directory.path}", file=sys.stderr)
        else:
            shutil.rmtree(directory.path, ignore_errors=True)


class Demo:
    """One run of the plan."""

    def __init__(self, plan: Plan, display: Display) -> None:
        self._plan = plan
        self._display = display
        self._journal = Journal()
        self._senders = Senders(self._journal)
        self._load_is_over = False
        self._load_seconds = 0.0
        self._transfers_answered = 0
        self._answered_before_crash = 0
        self._recovery_seconds: list[float] = []

    async def run(self) -> Result:
        """Runs the demo; raises `CommandFailed` if it cannot go on."""
        say, plan = self._display.step, self._plan
        async with AsyncExitStack() as self._clients:
            await self._start_engine()
            try:
                say(
                    "engine",
                    f"process {self._engine.pid} serves the bank at {self._engine.url}, data in {plan.data_dir}",
                )
                began_s = time.monotonic()
                await self._senders.send_all(openings(plan.accounts))
                say("accounts", f"{plan.accounts:,} opened in {time.monotonic() - began_s:.1f} s")
                say("load", f"{SENDERS} clients transfer money over HTTP, most of it between a few hot accounts")
                await self._load()
                held = await self._ask()
                await self._engine.stop()
                say("stop", "the engine finished its requests, stored a snapshot and ended")
            except CommandFailed as error:
                raise self._engine.failure() or error from None
            finally:
                await self._engine.end()
        say("audit", "every call is run again, one by one, without the engine; this takes a few seconds")
        # In a thread, so that the display goes on and Ctrl-C is heard.
        checks = await asyncio.to_thread(self._audit, held)
        return Result(self._journal, checks, self._transfers_answered, self._load_seconds, self._recovery_seconds)

    async def _start_engine(self) -> None:
        self._engine = await EngineProcess.start(self._plan.data_dir, SNAPSHOT_SECONDS)
        self._senders.connect(await self._clients.enter_async_context(styx.connect(self._engine.url)))

    async def _load(self) -> None:
        await together((self._senders.send_all(self._transfers()), self._disturb()))

    def _transfers(self) -> Iterator[Call]:
        for call in transfers(self._plan.accounts, self._plan.seed):
            if self._load_is_over:
                return
            yield call

    async def _disturb(self) -> None:
        """Crashes the engine at equal distances, not at the start and not at the end."""
        phases = self._plan.crashes + 1
        for phase in range(phases):
            if phase:
                await self._crash_and_recover()
            await self._let_run(phase, phases)
        self._load_is_over = True

    async def _let_run(self, phase: int, phases: int) -> None:
        journal, seconds = self._journal, self._plan.seconds / phases
        began_s, answered = time.monotonic(), len(journal.acknowledged)
        spent_s = 0.0
        while spent_s < seconds:
            await asyncio.sleep(min(TICK_SECONDS, seconds - spent_s))
            spent_s = time.monotonic() - began_s
            rate = (len(journal.acknowledged) - answered) / spent_s
            self._display.progress(
                (phase + min(spent_s / seconds, 1.0)) / phases,
                f"{journal.committed:,} committed, {journal.aborted:,} aborted, {rate:,.0f}/s",
            )
        self._transfers_answered += len(journal.acknowledged) - answered
        self._load_seconds += spent_s

    async def _crash_and_recover(self) -> None:
        say, journal = self._display.step, self._journal
        began_s = time.monotonic()
        self._engine.kill()
        self._senders.disconnect()
        self._answered_before_crash = len(journal.acknowledged)
        say(
            "crash",
            f"SIGKILL to process {self._engine.pid} after {self._answered_before_crash:,} replies; "
            f"{journal.in_flight} calls are under way and may have committed or not",
        )
        await self._engine.gone()
        await self._start_engine()
        self._recovery_seconds.append(time.monotonic() - began_s)
        say(
            "recovery",
            f"process {self._engine.pid} serves after {self._recovery_seconds[-1]:.2f} s, {self._engine.start_text}; "
            "the calls without a reply are sent again",
        )

    async def _ask(self) -> dict[str, int]:
        """Sends calls answered before the last crash again; then gives the balance of every account, by key."""
        before = self._journal.acknowledged[: self._answered_before_crash]
        await self._senders.ask_again(before[-ASKED_AGAIN_MAX:])
        sent = len(self._journal.entries)
        await self._senders.send_all(balances(self._plan.accounts))
        return {entry.call.key: entry.replies[0].result or 0 for entry in self._journal.entries[sent:]}

    def _audit(self, held: dict[str, int]) -> list[Check]:
        history = read_history_of(self._plan.data_dir, N_SLOTS_DEFAULT)
        return audit(self._journal, history, held, N_SLOTS_DEFAULT)
