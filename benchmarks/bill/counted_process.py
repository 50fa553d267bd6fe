"""The command line in a process that counts the Python functions it enters, and writes the counts into a file.

A coroutine counts again whenever it goes on. Compiled code is not counted, so what is counted is the interpreted part.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

MODULE: Final = "benchmarks.bill.counted_process"
FLUSH_SECONDS: Final = 0.2
"""Between two writings of the file."""

Calls = dict[str, int]
"""How often functions were entered, by FILE:NAME, the file without its folder."""


class CallCounter:
    """Counts what the thread that calls `start` enters from then on."""

    def __init__(self) -> None:
        self._entered: Counter[CodeType] = Counter()

    def start(self) -> None:
        """Begins to count."""
        entered = self._entered

        def count(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                entered[frame.f_code] += 1

        sys.setprofile(count)

    def stop(self) -> None:
        """Counts no more, on the thread that has called `start`."""
        sys.setprofile(None)

    def calls(self) -> Calls:
        """All counts so far."""
        found: Counter[str] = Counter()
        for code, number in self._entered.copy().items():
            found[f"{os.path.basename(code.co_filename)}:{code.co_qualname}"] += number
        return dict(found)


def file_of(folder: Path, pid: int) -> Path:
    """Where the process `pid` that runs in `folder` writes its counts."""
    return folder / f"calls-{pid}.json"


def _write(counter: CallCounter, file: Path) -> None:
    while True:
        time.sleep(FLUSH_SECONDS)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(counter.calls()), "utf-8")
        new.replace(file)  # never half of it


def main() -> int:
    """As `python -m styx`."""
    from styx.cli import main as styx

    counter = CallCounter()
    file = file_of(Path.cwd(), os.getpid())
    threading.Thread(target=_write, args=(counter, file), name="calls", daemon=True).start()
    counter.start()
    return int(styx() or 0)


if __name__ == "__main__":
    sys.exit(main())
