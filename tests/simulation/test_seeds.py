"""The simulator on thousands of seeds with faults: every reply and the final state equal serial replay.

The count is `STYX_SEEDS` (default 2,000); a seed that fails anywhere is added to `REGRESSIONS`, or
`CLUSTER_REGRESSIONS`, for good.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from msgspec.structs import replace

from proof.elsewhere import KINDS, compare_elsewhere, compare_kinds
from proof.simulation import random_plan, simulate
from proof.simulation.landed import FATES, LOST
from proof.simulation.plan import (
    CLUSTER_FAULT_KINDS,
    CONTROL_KINDS,
    FAULT_KINDS,
    INGEST_FAULT_KINDS,
    PLANNED_KINDS,
)
from proof.soak import describe, run_kinds, run_seeds

SEEDS = int(os.environ.get("STYX_SEEDS", "2000"))
TOGETHER = 100
"""Seeds of one test, so that the processes of a run share them."""
SPINNING = 60

REGRESSIONS = {
    208: "changes were looked for of an epoch that was open for marks alone when all had been answered",
    120380: "the simulator lost patience with ingests whose calls were answered one an epoch",
    121172: "the simulator ended before a request of an ingest had come",
    394: "a call that was given for later came to the limit of calls where these were counted exactly, and only there",
    3: "two coordinators gave the same generation: its number was kept apart from the log that it fences",
    62: "the state after a recovery differed: epochs of a doubly used generation",
    84: "the last worker was lost between a generation's marker and its placement",
    86: "a repetition that came after a snapshot was also in it, through a list that both shared",
    127: "a replayed epoch started at another counter: epochs of a doubly used generation",
    139: "a snapshot taken amid a replay pointed behind the epochs that were still to be replayed",
    12177: "an exception in the lock phase was final although more calls stood before it than the limit allows",
    171: "a coordinator that had slept took its workers' silence for theirs",
    65920: "a replay's lock phase counted those who were cut as well, gave others up, and met what did not end",
    67116: "the same amid a run",
    1594: "a worker that loaded late for an old generation told events of a later one as lost",
    62138: "the simulator had no patience with epochs of one transaction each on eight workers",
}
CLUSTER_REGRESSIONS = {
    1909: "a record that one version had refused was taken by the next one, behind later records",
    463: "simulated ingests rested until the end of an idle time that had been cut short",
    1713: "a coordinator that had stopped told an operator that it would scale",
    20001: "the late answer of the store for a failed snapshot displaced that for the next one, which never ended",
    40955: "what workers were started with was offered once, amid a deployment that failed: no version ever ran",
    63901: "a replay's lock phase counted one who was cut as well, and gave up the only other, who was most of them",
    69169: "the same behind sixteen rounds with patches, without two who were cut",
    96: "the simulator read the replies of a cluster while one, which nobody waits for, was on its way",
    79489: "nobody started a coordinator again that one before it had fenced, which took over later",
    67535: "a changed cron began by a clock that was behind, and gave a tick that had been made",
    78281: "the same with a cron that another one's function calls",
    78425: "what ran at once with a function that called elsewhere read by chance, in a replay something else",
    60477: "a simulated worker that a later generation had left out ended the run where its reader would have ended",
    61701: "the simulated log did not tell a coordinator that an older one had fenced it while it took over",
}

ELSEWHERE_REGRESSIONS = {
    68020: "functions that ran at once reached one entity, and the order of arrival decided which of them raised",
    74440: "the same, and which transaction a lock phase gave up",
    76080: "the same, and one of them did not end",
}
"""What `compare_elsewhere` found."""


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_regression(seed: int) -> None:
    simulate(random_plan(seed))


@pytest.mark.parametrize("seed", CLUSTER_REGRESSIONS)
def test_regression_of_a_cluster(seed: int) -> None:
    simulate(random_plan(seed, cluster=True))


@pytest.mark.parametrize("seed", ELSEWHERE_REGRESSIONS)
def test_regression_of_a_replay_elsewhere(seed: int) -> None:
    compare_elsewhere(seed, arrival=seed)


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_gives_the_same_run_twice(seed: int) -> None:
    first, second = simulate(random_plan(seed)), simulate(random_plan(seed))
    assert first.replies == second.replies
    assert first.state_hash == second.state_hash
    assert first.messages == second.messages


ELSEWHERE_REGRESSIONS = {
    230: "a collision was told beside the calls that carried the share, and the root could end before it heard",
    390: "the same, with eight workers on four slots",
    680: "the last epoch was replayed as if no reply stood, and a function that had ended was cut",
}


@pytest.mark.parametrize("seed", [*range(8), *ELSEWHERE_REGRESSIONS])
def test_the_log_decides_on_any_number_of_workers_in_any_order_of_arrival(seed: int) -> None:
    for arrival in (1, 2, 3):
        compare_elsewhere(seed, arrival)


KINDS_REGRESSIONS = {
    29: "a function that had ended was cut: the record that said so had an older generation than the log's last one",
}
KINDS_SEEDS = 60


@pytest.mark.parametrize("seed", [*range(4), *KINDS_REGRESSIONS])
def test_the_log_decides_for_functions_of_all_kinds(seed: int) -> None:
    compare_kinds(seed)


@pytest.mark.slow
def test_the_log_decides_for_functions_of_all_kinds_and_all_occur() -> None:
    tally = run_kinds(range(KINDS_SEEDS))
    assert not tally.failures, "\n".join(tally.failures)
    assert [kind for kind in KINDS if not tally.kinds[kind]] == []


@pytest.mark.slow
def test_hundreds_of_epochs_on_many_workers_have_the_time_they_take() -> None:
    compare_elsewhere(1187, arrival=1187)


@pytest.mark.slow
def test_the_hash_seed_does_not_matter() -> None:
    """Sets and dictionaries of strings are ordered otherwise in every process; nothing may depend on that."""
    script = (
        "from proof.simulation import random_plan, simulate\n"
        "for seed in range(8):\n"
        "    report = simulate(random_plan(seed))\n"
        "    print(report.replies, report.state_hash, report.messages)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.slow
def test_functions_run_too_long_in_lock_phases_too() -> None:
    """Too rare to be met by every hundred ordinary seeds, so many functions of these do."""
    reports = (simulate(replace(random_plan(seed), spins=0.4)) for seed in range(SPINNING))
    assert sum(report.unlocked for report in reports) > 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_thousands_of_seeds(first: int) -> None:
    tally = run_seeds(seed for seed in range(first, min(first + TOGETHER, SEEDS)))
    print(describe(tally))
    assert not tally.failures, "\n".join(tally.failures)
    if tally.seeds == TOGETHER:
        kinds = {*FAULT_KINDS, *CLUSTER_FAULT_KINDS, *PLANNED_KINDS, *CONTROL_KINDS, *INGEST_FAULT_KINDS}
        assert tally.faults.keys() == kinds, "every kind of fault must have happened"
        assert tally.landed.keys() >= set(FATES) - {LOST}, "foreign records must have met every fate but that of chance"
        assert tally.cut, "functions that run too long must have been met"
        assert tally.local, "local functions must have run in phase 3"
        assert tally.left, "some of them must have left their slots"
        assert tally.read_only, "read-only functions must have been met"
        assert tally.violations, "and refused writes"
        assert tally.outside, "reads outside the log must have been checked"
        assert tally.listings, "and listings among them"
        assert tally.ticks, "crons must have ticked"
