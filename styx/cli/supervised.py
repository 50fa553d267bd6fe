"""The end of a process whose supervisor is gone: its standard input is a pipe from there, and closes then.

It works however the supervisor ends, on every system, and also while the event loop here is stuck in somebody's code.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Final

VARIABLE: Final = "STYX_SUPERVISED"
"""Set by a supervisor whose pipe standard input is; without it standard input means nothing."""
END_SECONDS_MAX: Final = 15.0
"""From the supervisor's end to the last resort."""


def end_with_supervisor() -> None:
    """Begins to watch, if there is a supervisor: SIGTERM to this process when it is gone, and SIGKILL later."""
    if os.environ.pop(VARIABLE, "") == "1":
        threading.Thread(target=_watch, args=(sys.stdin.fileno(),), name="styx-supervisor", daemon=True).start()


def _watch(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_SECONDS_MAX)
    os.kill(os.getpid(), signal.SIGKILL)
