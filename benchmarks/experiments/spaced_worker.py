"""The command line, with a worker that reads the time between the beginnings of two epochs from a file in its
directory. Without the file it is an ordinary worker. It serves to compare clusters at different rates: with
proportional times, their epochs have the same size.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Final

from styx.cli import main
from styx.cluster.worker import generation
from styx.cluster.worker.arrival_gate import ArrivalGate

MODULE: Final = "benchmarks.experiments.spaced_worker"
FILE: Final = "epoch-seconds"


def space(directory: Path, seconds: float) -> None:
    """Of the workers that run in `directory`: so many seconds from one beginning to the next."""
    written = directory / f"{FILE}.new"
    written.write_text(str(seconds), "ascii")
    written.replace(directory / FILE)  # never half of it


class SpacedGate(ArrivalGate):
    """As the worker's own, but for the interval."""

    def epoch_began(self) -> None:
        """See `ArrivalGate.epoch_began`. Looks into the file, which costs little beside an epoch."""
        super().epoch_began()
        with contextlib.suppress(FileNotFoundError):
            self._interval_s = float(Path(FILE).read_text("ascii"))


if __name__ == "__main__":
    vars(generation)[ArrivalGate.__name__] = SpacedGate
    sys.exit(main())
