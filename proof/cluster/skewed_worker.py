"""The command line, with a worker whose wall clock a test sets forward and back.

The file `clock-offset` in the working directory has the offset in microseconds. It is read whenever the worker looks at
its clock, so that the clock jumps amid whatever goes on. It looks more often than others, so that nobody has to wait
for that. All else of the worker is the ordinary one.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

from styx.cli import main
from styx.cluster.worker import session
from styx.host import alarm
from styx.host.alarm import wall_clock_us

MODULE: Final = "proof.cluster.skewed_worker"
LOOK_SECONDS: Final = 1.0
"""How often it looks at its clock at least."""
_OFFSET_FILE: Final = "clock-offset"


def skewed_us() -> int:
    """Microseconds since 1970, as the test wants them to be."""
    try:
        return wall_clock_us() + int(Path(_OFFSET_FILE).read_text())
    except FileNotFoundError:
        return wall_clock_us()


def set_clocks(directory: Path, offset: timedelta) -> None:
    """Sets the clocks of all such workers in `directory`, whatever they show."""
    made = directory / f"{_OFFSET_FILE}.new"
    made.write_text(str(offset // timedelta(microseconds=1)))
    made.rename(directory / _OFFSET_FILE)


if __name__ == "__main__":
    vars(session)[wall_clock_us.__name__] = skewed_us
    vars(alarm)["SLEEP_SECONDS_MAX"] = LOOK_SECONDS
    sys.exit(main())
