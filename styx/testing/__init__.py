"""Tools to test an app, and to prove an engine right: the serial reference, the history checker and random programs."""

from __future__ import annotations

from styx.execution import Outcome
from styx.testing.history import HistoryReport, SerializabilityViolation, check_history, state_hash
from styx.testing.serial import MissingExternal, SerialReference

__all__ = [
    "HistoryReport",
    "MissingExternal",
    "Outcome",
    "SerialReference",
    "SerializabilityViolation",
    "check_history",
    "state_hash",
]
