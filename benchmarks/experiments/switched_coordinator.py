"""The command line, with a coordinator whose snapshots are switched off by one signal and on by another. It serves to
measure with and without snapshots on the same processes.
"""

from __future__ import annotations

import asyncio
import math
import signal
import sys
from typing import Final

from styx.cli import main
from styx.cluster.coordinator import process
from styx.cluster.coordinator.process import CoordinatorProcess
from styx.cluster.options import CoordinatorOptions, ProcessOptions
from styx.model.app import App

MODULE: Final = "benchmarks.experiments.switched_coordinator"
NONE: Final = signal.SIGUSR1
"""No snapshot is begun from here on."""
AGAIN: Final = signal.SIGUSR2
"""The next one begins at once if anything has changed."""


class SwitchedCoordinator(CoordinatorProcess):
    """Hears the signals from its beginning on."""

    def __init__(self, options: ProcessOptions, coordinator: CoordinatorOptions, app: App | None = None) -> None:
        super().__init__(options, coordinator, app)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(NONE, self._set_interval, math.inf)
        loop.add_signal_handler(AGAIN, self._set_interval, coordinator.snapshot_interval_s)

    def _set_interval(self, seconds: float) -> None:
        if self.session is not None:
            self.session.core.clock.interval_s = seconds


if __name__ == "__main__":
    vars(process)[CoordinatorProcess.__name__] = SwitchedCoordinator
    sys.exit(main())
