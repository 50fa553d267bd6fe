"""Tools to test an app: an embedded cluster, the serial reference, and the checker of whole histories."""

from __future__ import annotations

from styx.model.execution import Outcome
from styx.testing.fixture import CarriedTooOften, EmbeddedCluster, embedded_cluster
from styx.testing.history import HistoryReport, SerializabilityViolation, check_history, state_hash
from styx.testing.recorded_history import HistoryReleased, RecordedHistory, read_history, read_history_of
from styx.testing.serial import MissingExternal, SerialReference
from styx.testing.topic_records import take_records

__all__ = [
    "CarriedTooOften",
    "EmbeddedCluster",
    "HistoryReleased",
    "HistoryReport",
    "MissingExternal",
    "Outcome",
    "RecordedHistory",
    "SerialReference",
    "SerializabilityViolation",
    "check_history",
    "embedded_cluster",
    "read_history",
    "read_history_of",
    "state_hash",
    "take_records",
]
