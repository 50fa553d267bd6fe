"""The group `engine`: the engine in memory against the bare loop, on one core, without any log or network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.driver.pace import Machine, in_a_quiet_phase
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.targets.compare import note
from benchmarks.experiments.targets.engine_alone import beside_bare_loop, in_fresh_process
from benchmarks.experiments.targets.verdict import Run, Verdict

TRANSACTIONS: Final = 50_000
KEYS: Final = {"engine-uniform": 10_000, "engine-hot": 100}


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], _many_keys: int) -> None:
    """Both loops run the same requests one after the other in one process."""
    machine = Machine()
    for number in range(1, bench.common.runs + 1):
        for name, verdict in verdicts.items():
            keys = KEYS[name]
            alone = await in_a_quiet_phase(
                lambda keys=keys: in_fresh_process(beside_bare_loop, keys, TRANSACTIONS),  # type: ignore[misc]
                lambda alone: machine.pace(alone.calibration),
                bench.common.repeats,
                bench.say,
            )
            bench.say(f"{name}: {alone.locked:.0%} of the transactions were in conflict")
            note(bench, verdict, number, Run(over=alone.engine_us, under=alone.bare_us, unit="µs"))
