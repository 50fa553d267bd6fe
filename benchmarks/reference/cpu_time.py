"""Processor time of one action in this process, without the garbage collector's share of what came before."""

from __future__ import annotations

import time
from collections.abc import Callable

from styx.process.memory import tune_collector


def cpu_seconds(action: Callable[[], object]) -> float:
    """Processor time that `action` takes; the collector is tuned as in a worker process."""
    tune_collector()
    started = time.process_time()
    action()
    return time.process_time() - started
