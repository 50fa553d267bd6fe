"""The simulator on thousands of seeds with faults: every reply and the final state equal serial replay.

The count is `STYX_SEEDS` (default 2,000); a seed that fails anywhere is added to `REGRESSIONS` for good.
"""

from __future__ import annotations

import os

import pytest

from styx.testing.simulation import random_plan, replay_elsewhere, simulate
from styx.testing.soak import Tally, describe, run_parallel

SEEDS = int(os.environ.get("STYX_SEEDS", "2000"))

REGRESSIONS = {
    3: "two coordinators gave the same generation: its number was kept apart from the log that it fences",
    62: "the state after a recovery differed: epochs of a doubly used generation",
    84: "the last worker was lost between a generation's marker and its placement",
    86: "a repetition that came after a snapshot was also in it, through a list that both shared",
    127: "a replayed epoch started at another counter: epochs of a doubly used generation",
    139: "a snapshot taken amid a replay pointed behind the epochs that were still to be replayed",
    171: "a coordinator that had slept took its workers' silence for theirs",
}


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_regression(seed: int) -> None:
    simulate(random_plan(seed))


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_gives_the_same_run_twice(seed: int) -> None:
    first, second = simulate(random_plan(seed)), simulate(random_plan(seed))
    assert first.replies == second.replies
    assert first.state_hash == second.state_hash
    assert first.messages == second.messages


@pytest.mark.parametrize("seed", range(12))
def test_the_log_decides_on_any_number_of_workers_in_any_order_of_arrival(seed: int) -> None:
    report = simulate(random_plan(seed, faults=False), keep_log=True)
    expected = sorted(report.replies, key=lambda reply: reply.sequence)
    for workers in (1, 2, 3, 8):
        for arrival in (1, 2):
            replies, state_hash = replay_elsewhere(report, workers=workers, arrival=arrival)
            assert replies == expected
            assert state_hash == report.state_hash


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_thousands_of_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    total = Tally()
    for tally in run_parallel(range(SEEDS), jobs=os.cpu_count() or 1):
        total.add(tally)
    with capsys.disabled():
        print("\n" + describe(total))
    assert not total.failures, "\n".join(total.failures)
    assert total.seeds == SEEDS
    assert len(total.faults) == 11, "every kind of fault must have happened"
