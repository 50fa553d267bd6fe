"""The data of one running experiment: its options, the machine's speed so far, and every measured step. It reports each
step when the step ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from benchmarks.driver.pace import Machine, Pace, in_a_quiet_phase
from benchmarks.driver.result import Result
from benchmarks.experiments.settings import Common


class StepFailed(Exception):
    """A measurement failed: no rate was held, or the state contradicts the replies."""


class Step(msgspec.Struct, kw_only=True):
    """One run of the driver on `subject`. Of the tries of a step, only one counts."""

    subject: str
    result: Result


class Bench:
    """One for each experiment; `common` are its options."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.machine = Machine()
        self.steps: list[Step] = []
        self._began_s = time.monotonic()

    def say(self, text: str) -> None:
        """Progress, for people."""
        print(f"{time.monotonic() - self._began_s:6.0f} s  {text}", file=sys.stderr, flush=True)

    async def quiet(
        self,
        step: Callable[[], Awaitable[Result]],
        worth_repeating: Callable[[Result], bool] = lambda _: True,
    ) -> Result:
        """Runs a step, and repeats it if the machine was in a slow phase and the result is `worth_repeating`. The
        quietest try counts.
        """

        def pace_of(result: Result) -> Pace:
            pace = self.machine.pace_of(result)
            return pace if worth_repeating(result) else Pace(0.0, 0.0)

        return await in_a_quiet_phase(step, pace_of, self.common.repeats, self.say)

    def facts(self) -> dict[str, Any]:
        """For the result file: the way of measuring, and how steady the machine's speed was."""
        common = msgspec.structs.asdict(self.common) | {"out": str(self.common.out)}
        return {
            "options": common,
            "calibration_ms": [self.machine.best_ms, self.machine.worst_ms] if self.steps else [],
            "seconds": time.monotonic() - self._began_s,
        }
