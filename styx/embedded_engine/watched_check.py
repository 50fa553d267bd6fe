"""The check of stored state at a start, under a separate watchdog: a `migrate=` that never ends is named and
interrupted.

Code that ran too long is among the findings.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from styx.model.app import App
from styx.model.limits import Limits
from styx.schema.state_check import Table, check_tables
from styx.schema.state_findings import StateFindings
from styx.watchdog.watchdog import Watchdog
from styx.watchdog.watched import WatchedCheck
from styx.worker.invocation import Running
from styx.worker.standing import StateGuard


def checked(app: App, n_slots: int, limits: Limits, slots: Mapping[int, Mapping[str, Table]]) -> StateFindings:
    """As `check_tables`, on the thread that calls it."""
    running = Running()
    watchdog = Watchdog(WatchedCheck(running, limits, threading.get_ident()))
    watchdog.start()
    try:
        return check_tables(app, n_slots, limits, slots, StateGuard(app, n_slots, limits, running))
    finally:
        watchdog.stop()
