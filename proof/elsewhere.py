"""The log alone decides: requests and epoch records of a simulation, replayed on other numbers of workers and in other
orders of arrival, give the same replies and the same state.

`kinds_plan` is the plan of a seed in which everything occurs whose place in the serial order is decided while the epoch
runs: numbers that travel and make rounds with patches, calls whose kind changes, read-only functions, local functions
that leave their slot, sequences, rows and their constraints, unique ids, exceptions, exclusions and call limits.
`kinds_of` counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import zip_longest
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from proof.random_requests import CONTENDED, MIXED, Profile
from proof.simulation import (
    SimulationFailure,
    SimulationPlan,
    SimulationReport,
    random_plan,
    replay_elsewhere,
    simulate,
)
from styx.errors import CallLimitExceeded, StyxError
from styx.messages import decode_request
from styx.model.table_names import holds_rows, holds_sequences
from styx.sequencer.epoch_record import EpochRecord, decode

WORKERS: Final = (1, 2, 3, 8)
KINDS: Final = (
    "rounds with patches",
    "given up after them",
    "exceptions of phase 2",
    "carried",
    "committed in phase 0",
    "exceptions of phase 3",
    "committed in phase 3",
    "left phase 3",
    "sequences",
    "rows",
    "unique ids",
    "over the call limit",
)
"""What a number of such seeds must contain."""


def kinds_plan(seed: int) -> SimulationPlan:
    """A plan without faults whose requests are of all kinds: few of them, on few entities, because it runs five times
    over.
    """
    rng = Random(f"kinds {seed}")
    limit = rng.choice([10_000, 24, 12])
    return replace(
        random_plan(seed, faults=False),
        workers=rng.choice([1, 2, 3, 8]),
        slots=rng.choice([2, 3, 4, 4, 8]),
        requests=rng.choice([15, 25, 40]),
        duration_s=0.3,
        bursts=rng.choice([1, 2, 3]),
        profile=rng.choice([CONTENDED, CONTENDED, MIXED, Profile(keys=4, poisoned=0.1)]),
        externals=rng.choice([0.0, 0.0, 0.1]),
        hidden_errors=rng.choice([0.0, 0.1]),
        spins=rng.choice([0.0, 0.0, 0.1]),
        sequences=0.4,
        rows=0.5,
        sweeps=0.3,
        links=0.4,
        loads=rng.choice([0.0, 0.1]),
        reads=rng.choice([0.0, 0.1]),
        locals=0.6,
        contended=0.2,
        looks=0.4,
        travels=rng.choice([0.5, 0.8]),
        odd=0.4,
        laters=0.3,
        emits=0.3,
        ingests=0.0,  # of few calls no batch of records is one
        lives=0.2,
        crons=False,
        halts=rng.choice([0.0, 0.0, 0.3]),
        patch_rounds=rng.choice([(16, 8, 8), (16, 8, 8), (3, 2, 1), (1, 1, 1), (2, 1, 3)]),
        epoch_transactions_max=rng.choice([10, 40, 1000]),
        epoch_result_bytes_max=rng.choice([2**23, 2**23, 16]),
        invocations_max=limit,
        call_bytes=0 if limit == 10_000 else rng.choice([0, 0, 40]),
    )


def kinds_of(report: SimulationReport) -> Counter[str]:
    """How often each of `KINDS` occurred in a simulation that has kept its log."""
    replies, requests = report.replies, [decode_request(payload) for _, _, payload in report.requests]
    taken = {each.request_id for each in requests if b"\xa6unique" in each.params}
    return Counter(
        {
            "rounds with patches": report.patch_rounds,
            "given up after them": report.given_up,
            "exceptions of phase 2": sum(each.phase == 2 and each.error is not None for each in replies),
            "carried": _carried(report),
            "committed in phase 0": report.read_only,
            "exceptions of phase 3": sum(each.phase == 3 and each.error is not None for each in replies),
            "committed in phase 3": sum(each.phase == 3 and each.error is None for each in replies),
            "left phase 3": report.left,
            "sequences": sum(holds_sequences(operator) for operator, _ in report.history.state),
            "rows": sum(holds_rows(operator) for operator, _ in report.history.state),
            "unique ids": sum(each.error is None and each.request_id in taken for each in replies),
            "over the call limit": sum(
                each.error is not None and each.error[1] == CallLimitExceeded.__name__ for each in replies
            ),
        }
    )


def _carried(report: SimulationReport) -> int:
    """How many transactions ended in a later epoch than they began in."""
    begun = {}
    for record in map(decode, report.records):
        if isinstance(record, EpochRecord):
            begun[record.epoch] = record.counter
    slots = report.plan.slots
    return sum((each.tid - 1) // slots < begun.get(each.epoch, 0) for each in report.replies)


def compare_elsewhere(seed: int, arrival: int) -> None:
    """Checks that the log of a seed alone decides; `arrival` decides the order in which messages arrive.

    Raises `SimulationFailure` naming the number of workers.
    """
    plan = replace(random_plan(seed, faults=False), crons=False)  # a replay's clock would go on ticking
    compare(simulate(plan, keep_log=True), dict.fromkeys(WORKERS, arrival))


def compare_kinds(seed: int) -> SimulationReport:
    """As `compare_elsewhere`, for the plan of all kinds, with another order of arrival and another pace on each number
    of workers.
    """
    report = simulate(kinds_plan(seed), keep_log=True)
    rng = Random(f"paces {seed}")
    pace = {"slice_invocations": rng.choice([1, 2, 5, 64]), "slow_messages": rng.choice([0.0, 0.02, 0.2])}
    compare(report, {workers: seed * 10 + workers for workers in WORKERS}, pace)
    return report


def compare(report: SimulationReport, arrivals: Mapping[int, int], pace: Mapping[str, Any] | None = None) -> None:
    """Replays a log on each number of workers, with its order of arrival, and fields of the plan from `pace`."""
    expected = sorted(report.replies, key=lambda reply: reply.sequence)
    for workers, arrival in arrivals.items():
        where = f"seed {report.plan.seed}: replayed on {workers} workers the log gives"
        try:
            replies, state_hash = replay_elsewhere(report, workers=workers, arrival=arrival, pace=pace or {})
        except (AssertionError, StyxError) as error:
            raise SimulationFailure(f"{where} {type(error).__name__}: {error}\n{report.plan}") from error
        for before, now in zip_longest(expected, replies):
            if before != now:
                raise SimulationFailure(f"{where} {now} instead of {before}\n{report.plan}")
        if state_hash != report.state_hash:
            raise SimulationFailure(f"{where} another state\n{report.plan}")
