"""The errors of a measurement that are reported as a message instead of a traceback."""

from __future__ import annotations

from typing import Final

from benchmarks.driver.clients import ClientFailed
from benchmarks.experiments.bench import StepFailed
from proof.cluster.child import ChildFailed
from styx.errors import StyxError

FAILURES: Final = (StepFailed, StyxError, ClientFailed, ChildFailed, OSError)


def reason(error: Exception) -> str:
    """For people."""
    return str(error) if isinstance(error, StepFailed) else f"{type(error).__name__}: {error}"
