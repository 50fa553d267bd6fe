"""`python -m benchmarks.micro.breakdown`: where the engine's time for a transaction goes, step by step.

Clocks are read around the protocol's own methods, a few times an epoch, so that reading them costs next to nothing. The
line `rest` is the time between the steps: the benchmark's loop and the coordinator. Figures are processor time of one
thread, as the median of several runs.
"""

from __future__ import annotations

import argparse
import platform
import statistics
from collections.abc import Callable
from time import thread_time_ns
from typing import Any, Final

from benchmarks.micro.bank import account, app
from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.reference.transfers import START_BALANCE, encoded, transfers
from styx.native.form import FORM, PLAIN_VARIABLE
from styx.process.memory import tune_collector
from styx.values.codec import encode_strict
from styx.worker import validation
from styx.worker.epoch import Epoch
from styx.worker.lock_phase import SlotLockPhase

STEPS: Final = {
    "sequence": "requests decoded, checked and made transactions",
    "execute": "functions run: arguments decoded, state decoded and encoded, calls made, shares returned",
    "validate": "conflicts looked for",
    "commit": "writes applied to the tables and to the next snapshot's delta",
    "lock phase": "transactions in conflict run again",
    "reply": "outcomes decided, reply records made and encoded",
    "release": "what the epoch had in memory is freed",
    "rest": "barriers, the coordinator, and the loop that drives them",
}


class Clock:
    """Nanoseconds by step. The time of an inner step does not count for the outer one."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STEPS, 0)
        self._inside = [0]

    def around(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, with its time counted."""

        def timed(*args: Any, **named: Any) -> Any:
            self._inside.append(0)
            started = thread_time_ns()
            try:
                return function(*args, **named)
            finally:
                took = thread_time_ns() - started
                self.spent[step] += took - self._inside.pop()
                self._inside[-1] += took

        return timed


def run(keys: int, count: int) -> dict[str, float]:
    """Microseconds a transaction by step."""
    drawn = transfers(count, keys, seed=7)
    routed = [
        (account.partition_of(debtor, 4) % 4, data) for (debtor, _, _), data in zip(drawn, encoded(drawn), strict=True)
    ]
    engine = EngineLoop(app)
    for key in range(keys):
        slot = engine.worker.slots[account.partition_of(key, 4) % 4]
        slot.state.table("account").commit(-1, {key: encode_strict({"balance": START_BALANCE})})
    clock = Clock()
    restore = _watch(engine, clock)
    tune_collector()
    started = thread_time_ns()
    try:
        engine.run(routed)
    finally:
        restore()
    whole = thread_time_ns() - started
    clock.spent["rest"] += whole - sum(clock.spent.values())
    return {step: spent / count / 1e3 for step, spent in clock.spent.items()}


def _watch(engine: EngineLoop, clock: Clock) -> Callable[[], None]:
    worker, executor = engine.worker, engine.worker.executor
    places: list[tuple[Any, str, str]] = [
        (worker._generation.intake, "form", "sequence"),
        (executor, "begin", "execute"),
        (executor, "run", "execute"),
        (validation, "conflicts", "validate"),
        (validation, "commit", "commit"),
        (SlotLockPhase, "run", "lock phase"),
        (SlotLockPhase, "commit", "lock phase"),
        (Epoch, "commit", "reply"),
        (Epoch, "lock_decided", "reply"),
        (engine, "emit", "reply"),
        (executor, "end", "release"),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, step in places:
        setattr(owner, name, clock.around(step, getattr(owner, name)))

    def restore() -> None:
        for owner, name, function in before:
            setattr(owner, name, function)

    return restore


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro.breakdown", description=__doc__)
    parser.add_argument("--transactions", type=int, default=30_000, help="per run (default 30000)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default 5)")
    options = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, µs of CPU a transaction")
    if FORM.extensions:
        parser.error(f"compiled steps cannot be told apart: run it with {PLAIN_VARIABLE}=1")
    columns = []
    for keys in (10_000, 100):
        runs = [run(keys, options.transactions) for _ in range(options.runs)]
        columns.append({step: statistics.median(each[step] for each in runs) for step in STEPS})
    print(f"{'':12} {'uniform':>8} {'hot':>8}")
    for step, meaning in STEPS.items():
        print(f"{step:12} {columns[0][step]:8.2f} {columns[1][step]:8.2f}  {meaning}")
    print(f"{'together':12} {sum(columns[0].values()):8.2f} {sum(columns[1].values()):8.2f}")


if __name__ == "__main__":
    main()
