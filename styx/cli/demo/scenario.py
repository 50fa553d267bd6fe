"""The demo from start to end: open accounts, transfer, kill the engine in the middle, recover, audit.

The order of events is here; how each is done, and what it says, is in the modules beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import styx
from styx.cli.demo.audit import Check, audit
from styx.cli.demo.display import Display
from styx.cli.demo.engine_process import EngineProcess
from styx.cli.demo.history import read_history
from styx.cli.demo.journal import Journal
from styx.cli.demo.senders import SENDERS, Senders
from styx.cli.demo.workload import Call, balances, openings, transfers
from styx.client.base import Client
from styx.embedded_engine.engine import N_SLOTS_DEFAULT

SNAPSHOT_SECONDS: Final = 2.0
"""Short beside the demo's load, so that a recovery has both a snapshot to load and a log to replay."""
ASKED_AGAIN_MAX: Final = 200
"""Calls answered just before a crash that are sent once more after it."""
_TICK_SECONDS: Final = 0.1


class Plan(NamedTuple):
    """What to do: `seconds` of load with `crashes` spread over it, on so many `accounts`, in `data_dir`."""

    seconds: float
    accounts: int
    seed: int
    crashes: int
    data_dir: Path


class Demo:
    """One run. `run` gives the audit's checks."""

    def __init__(self, plan: Plan, display: Display) -> None:
        self._plan = plan
        self._display = display
        self._journal = Journal()
        self._senders = Senders(self._journal)
        self._load_is_over = False
        self._load_seconds = 0.0
        self._acknowledged_at_crash = 0
        self._recoveries: list[float] = []

    async def run(self) -> list[Check]:
        """Everything; raises `CommandFailed` if the demo itself cannot go on."""
        say, plan, journal = self._display.step, self._plan, self._journal
        await self._start_engine()
        try:
            say("engine", f"process {self._process.pid} serves the bank at {self._process.readiness.url}, data in {plan.data_dir}")
            began_s = time.monotonic()
            await self._watched(self._senders.send_all(openings(plan.accounts)))
            say("accounts", f"{plan.accounts:,} opened in {time.monotonic() - began_s:.1f} s")
            say("load", f"{SENDERS} clients make transfers over HTTP, most of them between a few hot accounts")
            await self._load()
            held = await self._ask_questions()
            await self._process.stop()
            say("stop", "the engine finished its requests, stored a snapshot and ended")
        finally:
            await self._end_engine()
        say("audit", f"run everything again in another way: {len(journal.entries):,} calls")
        # In a thread, because the live display is drawn meanwhile.
        history = await asyncio.to_thread(read_history, plan.data_dir, N_SLOTS_DEFAULT)
        return await asyncio.to_thread(audit, journal, history, held, N_SLOTS_DEFAULT)
