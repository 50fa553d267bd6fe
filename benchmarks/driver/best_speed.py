"""The best time of the fixed work (`calibration.py`) on this machine, kept over commands, so that a command whose whole
time is in a slow phase notices it as well. Without a folder to write to, it is the best time of the run itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import msgspec

from benchmarks.driver.calibration import Calibration
from benchmarks.driver.environment import Environment

FOLDER_VARIABLE: Final = "STYX_BENCHMARKS_CACHE"
"""Names another folder than ~/.cache/styx-benchmarks."""


def place() -> Path:
    """The file with the best times in milliseconds, by interpreter and processor."""
    return Path(os.environ.get(FOLDER_VARIABLE) or Path.home() / ".cache/styx-benchmarks") / "best_speed.json"


def best_ms(where: Environment, beside: Sequence[Calibration]) -> float:
    """The best mean processor time of calibrations around a run, those of this run included; it is kept."""
    known, key = _known(), f"{where.interpreter} on {where.processor}"
    own = fmean(one.cpu_ms for one in beside)
    if own < known.get(key, float("inf")):
        known[key] = own
        _keep(known)
    return known[key]


def _known() -> dict[str, float]:
    try:
        return msgspec.json.decode(place().read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}


def _keep(known: dict[str, float]) -> None:
    file = place()
    new = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(msgspec.json.encode(known))
        new.replace(file)
    except OSError:
        pass  # it is only a better warning
