"""Decides whether a step fell into a slow phase of the machine, by the fixed piece of work timed beside it. Pure.

A shared machine is slower at times: its processors are slower, or other processes use them. A step in such a phase is
repeated, and the try in the quietest phase counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from benchmarks.driver.accounting import MachineUsage
from benchmarks.driver.calibration import Calibration
from benchmarks.driver.result import Result

SLOWER_MAX: Final = 1.15
"""A phase is not slow if the fixed work took at most this many times its best time in the experiment."""
OTHERS_SHARE_MAX: Final = 0.1
"""The highest share of all processors' time in the window that other processes, or the hypervisor, may take in such a
phase.
"""

T = TypeVar("T")


class Pace(NamedTuple):
    """`slower`: the time of the fixed work by its best; `others`: the share of the machine that others had."""

    slower: float
    others: float

    @property
    def slow(self) -> bool:
        """Whether the step is worth repeating."""
        return self.slower > SLOWER_MAX or self.others > OTHERS_SHARE_MAX

    @property
    def loss(self) -> float:
        """A measure for comparing tries; smaller is better."""
        return self.slower * (1 + self.others)


def pace_in(result: Result) -> Pace:
    """Of a run of the driver, by the best time that is known on its machine (`Result.best_ms`)."""
    return pace_of_work(result.calibration, result.best_ms, result.machine, result.environment.processors)


def pace_of_work(beside: Sequence[Calibration], best_ms: float, machine: MachineUsage, processors: int) -> Pace:
    """Of a window with these calibrations around it, by the best time that is known (0 if none is)."""
    each_ms = sum(one.cpu_ms for one in beside) / len(beside)
    return Pace(each_ms / best_ms if best_ms else 1.0, others_in(machine, processors))


def others_in(machine: MachineUsage, processors: int) -> float:
    """The share of a machine's `processors` that other processes, and the hypervisor, had in a window."""
    return (machine.others_s + machine.stolen_s) / max(machine.seconds * processors, 1e-9)


class Machine:
    """Remembers how fast the fixed work has been at best, in the processes that it is timed in."""

    def __init__(self) -> None:
        self.best_ms = float("inf")
        self.worst_ms = 0.0

    def pace(self, beside: Sequence[Calibration], others: float = 0.0) -> Pace:
        """Of a step with these calibrations around it."""
        each_ms = sum(one.cpu_ms for one in beside) / len(beside)
        self.best_ms = min(self.best_ms, each_ms)
        self.worst_ms = max(self.worst_ms, each_ms)
        return Pace(each_ms / self.best_ms, others)

    def pace_of(self, result: Result) -> Pace:
        """Of a run of the driver."""
        return self.pace(result.calibration, others_in(result.machine, result.environment.processors))


async def in_a_quiet_phase(
    step: Callable[[], Awaitable[T]], pace_of: Callable[[T], Pace], repeats: int, say: Callable[[str], None]
) -> T:
    """What `step` gives, repeated up to `repeats` times while the phase is slow."""
    tries: list[tuple[Pace, T]] = []
    while True:
        given = await step()
        pace = pace_of(given)
        tries.append((pace, given))
        if not pace.slow or len(tries) > repeats:
            return min(tries, key=lambda each: each[0].loss)[1]
        say(f"a slow phase (x{pace.slower:.2f}, others {pace.others:.0%}): repeated")
