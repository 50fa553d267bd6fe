"""What one simulation does: its size, its pace and its faults, all drawn from a seed.

A plan is plain data, so that a failing one can be printed, cut down by hand and kept as a regression test.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from proof.random_requests import PROFILES, Profile
from styx.model.limits import MIB

FAULT_KINDS: Final = (
    "worker crash",
    "second worker crash during recovery",
    "coordinator crash",
    "coordinator and worker crash",
    "crash of everything",
    "frozen worker",
    "slow store",
    "failing store",
    "duplicate delivery",
    "garbage in the log",
    "idle hour",
)

CLUSTER_FAULT_KINDS: Final = (
    "zombie coordinator",
    "broken peer connection",
    "deployment",
    "scale",
    "frozen worker",
    "worker crash",
    "coordinator crash",
    "failing store",
)
"""What plans of a cluster draw on top of `FAULT_KINDS`."""

INGEST_FAULT_KINDS: Final = (
    "ingest killed",
    "second ingest",
    "zombie ingest",
    "foreign brokers away",
    "foreign topic made anew",
    "foreign topic truncated",
    "foreign topic grows",
)
"""What plans with foreign topics draw besides."""

PLANNED_KINDS: Final = ("leave", "all leave", "coordinator stop")
"""What they draw besides: somebody is told to end, is let go, and is started again, as in a rolling restart."""


OTHER_STORE: Final = "other store"
"""No plan draws it: a mistake of whoever deploys, which plans of tests make."""


SET_ASIDE: Final = "set aside"
"""No plan draws it: an operator sets a request aside that holds up a worker, which plans of tests make."""

CONTROL_KINDS: Final = (
    "deployment",
    "deployment that a worker cannot run",
    "deployment whose operator is lost",
    "check",
    "check that ends midway",
    "rollback",
    "drain",
    "scale",
    "worker lost amid a rollout",
    "coordinator lost amid a rollout",
    "store failing amid a rollout",
)
"""What plans draw besides whose cluster is `managed`: commands of operators, and what strikes their rollouts."""


INGEST_INVOCATIONS_MIN: Final = 10_000


class Fault(msgspec.Struct, frozen=True):
    """One of the kinds above at a time, lasting (a crash: until the restart) `duration_s`."""

    kind: str
    at_s: float
    duration_s: float


IDLE_HOUR_S: Final = 3600.0
IDLE_WITH_CRONS_S: Final = 120.0
"""How long an "idle hour" lasts where crons tick: thousands of ticks show no more than a hundred, and cost minutes."""


class SimulationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Times in virtual seconds. `repeats`: share of requests sent again with the same idempotency key;
    `externals`: share of requests that call an external function; `hidden_errors`: share that hide an error of the
    engine's now and then; `spins`: share that run too long now and then; `sequences`: share that take numbers;
    `rows`: requests that work on rows beside them, half as many that read rows, and the share of requests with such a
    step; `sweeps`: requests that work on whole partitions beside them, and half as many that read them;
    `links`: requests that work on rows which refer to other entities, beside them; `laters`: share of requests that
    give calls for later; `emits`: share of requests that emit events; `ingests`: foreign records beside them, a few at
    a time; `lives`: share that work on what lives for a
    time; `crons`: functions are called every second; `travels`: share of requests whose numbers travel; `odd`: share
    with calls whose kind a number decides; `loads`, `reads`, `locals`: chunks of bulk loads, reads of one entity and
    requests for local functions beside the requests, as a share of them; `contended`: share of requests with a program
    that are for a contended function; `looks`: requests for read-only functions beside them, and the share of requests
    that call one; `halts`: share of the time in which a worker takes up nothing. `patch_rounds`: how many rounds with
    patches a lock phase may have, first with all transactions, then without those that did not come to rest, and how
    many times as many as at first while these are most. `call_bytes`: so many bytes of arguments or of a result count
    as another call (0: more than there are).

    `outside`: share of the workers' steps behind which a read outside the log is asked for; `fences`: share
    of these that are strict.

    `cluster`: processes behave as those of a deployment on Kafka. Registrations have numbers of their own, appends of
    an older generation are refused from the fence on, peers have connections that break, coordinators can be zombies.
    `wanted` workers then share the slots (0: all), and the others stand by. `auto`: nobody says how many.

    `managed`: the coordinator has its control plane. Workers arrive with nothing but a package that they offer, are
    admitted, take code and then take part; versions are packages in the store; operators give commands. Where it is
    not, workers join at once, and versions are numbers that the protocol is given.
    """

    seed: int
    workers: int
    slots: int
    requests: int
    duration_s: float
    bursts: int
    profile: Profile
    repeats: float
    externals: float
    hidden_errors: float
    loads: float
    spins: float
    sequences: float
    rows: float
    sweeps: float
    links: float
    reads: float
    locals: float
    contended: float
    looks: float
    halts: float
    travels: float
    odd: float
    laters: float
    emits: float
    ingests: float
    lives: float
    patch_rounds: tuple[int, int, int]
    epoch_transactions_max: int
    epoch_result_bytes_max: int
    slice_invocations: int
    idempotency_keys_max: int
    invocations_max: int
    call_bytes: int
    snapshot_interval_s: float
    log_delay_s: float
    slow_messages: float
    faults: tuple[Fault, ...]
    cluster: bool = False
    wanted: int = 0
    auto: bool = False
    managed: bool = False
    crons: bool = False
    outside: float = 0.0
    fences: float = 0.0

    @property
    def idle_s(self) -> float:
        """How long no client sends anything, where that is a fault."""
        return IDLE_WITH_CRONS_S if self.crons else IDLE_HOUR_S


def random_plan(seed: int, *, workers: int | None = None, faults: bool = True, cluster: bool = False) -> SimulationPlan:
    """The plan of a seed; `workers` overrides their number, without `faults` nothing fails; `cluster`: of a cluster."""
    plan = _random_plan(seed, workers, faults)
    if cluster:
        plan = _of_cluster(plan, workers, faults)
    return _with_ingests(plan, faults)


def _with_ingests(plan: SimulationPlan, faults: bool) -> SimulationPlan:
    """Maybe with foreign topics. A batch of their records is more than the smallest limits allow."""
    rng = Random(f"ingests {plan.seed}")
    share = rng.choice([0.0, 0.0, 0.0, 0.1, 0.3])
    if not share or plan.invocations_max < INGEST_INVOCATIONS_MIN or plan.call_bytes:
        return plan
    more = [
        Fault(rng.choice(INGEST_FAULT_KINDS), rng.random() * plan.duration_s, rng.choice([0.02, 0.2, 1.0, 4.0]))
        for _ in range(rng.choice([1, 2, 4, 8]) if faults else 0)
    ]
    return replace(plan, ingests=share, faults=tuple(sorted([*plan.faults, *more], key=lambda fault: fault.at_s)))


def _of_cluster(plan: SimulationPlan, workers: int | None, faults: bool) -> SimulationPlan:
    seed = plan.seed
    rng = Random(f"cluster {seed}")
    processes = rng.choice([1, 2, 3, 4, 5]) if workers is None else workers
    more = [
        Fault(rng.choice(CLUSTER_FAULT_KINDS), rng.random() * plan.duration_s, rng.choice([0.02, 0.2, 1.0, 4.0]))
        for _ in range(rng.choice([1, 2, 4, 8]) if faults else 0)
    ]
    wanted = rng.randint(1, min(processes, plan.slots))
    # From generators of their own, so that older seeds keep what else they drew.
    rng = Random(f"planned {seed}")
    more += [
        Fault(rng.choice(PLANNED_KINDS), rng.random() * plan.duration_s, rng.choice([0.0, 0.02, 0.2, 1.0]))
        for _ in range(rng.choice([0, 1, 2, 4]) if faults else 0)
    ]
    rng = Random(f"control {seed}")
    managed = rng.random() < 0.5
    more += [
        Fault(rng.choice(CONTROL_KINDS), rng.random() * plan.duration_s, rng.choice([0.0, 0.02, 0.2, 1.0]))
        for _ in range(rng.choice([1, 2, 4, 8]) if faults and managed else 0)
    ]
    return replace(
        plan,
        cluster=True,
        managed=managed,
        auto=Random(f"auto {seed}").random() < 0.3,
        fences=0.3 if plan.outside else 0.0,
        workers=processes,
        wanted=wanted,
        faults=tuple(sorted([*plan.faults, *more], key=lambda fault: fault.at_s)),
    )


def _random_plan(seed: int, workers: int | None, faults: bool) -> SimulationPlan:
    rng = Random(f"plan {seed}")
    duration_s = rng.choice([0.3, 1.0, 3.0])
    drawn = rng.choice([1, 1, 2, 2, 3, 3, 8])
    planned = [
        Fault(rng.choice(FAULT_KINDS), rng.random() * duration_s, rng.choice([0.02, 0.2, 1.0, 4.0]))
        for _ in range(rng.choice([0, 1, 2, 3, 5]))
    ]
    return SimulationPlan(
        seed=seed,
        workers=drawn if workers is None else workers,
        slots=rng.choice([1, 2, 4, 4, 8]),
        requests=rng.choice([20, 60, 150]),
        duration_s=duration_s,
        bursts=rng.choice([1, 2, 5, 50]),
        profile=rng.choice(PROFILES),
        repeats=rng.choice([0.0, 0.05, 0.3]),
        # From a generator of its own, so that older seeds keep what else they drew.
        externals=Random(f"outside {seed}").choice([0.0, 0.0, 0.1, 0.5]),
        hidden_errors=Random(f"hidden {seed}").choice([0.0, 0.0, 0.0, 0.1, 0.4]),
        spins=Random(f"spins {seed}").choice([0.0, 0.0, 0.0, 0.1, 0.4]),
        sequences=Random(f"gapless {seed}").choice([0.0, 0.0, 0.0, 0.2, 0.6]),
        rows=Random(f"rows {seed}").choice([0.0, 0.0, 0.3, 1.0]),
        sweeps=Random(f"sweeps {seed}").choice([0.0, 0.0, 0.0, 0.3, 1.0]),
        links=Random(f"links {seed}").choice([0.0, 0.0, 0.0, 0.3, 1.0]),
        loads=Random(f"loads {seed}").choice([0.0, 0.0, 0.1, 0.4]),
        reads=Random(f"reads {seed}").choice([0.0, 0.0, 0.0, 0.2, 1.0]),
        locals=Random(f"locals {seed}").choice([0.0, 0.0, 0.3, 1.0]),
        contended=Random(f"contended {seed}").choice([0.0, 0.0, 0.2, 1.0]),
        looks=Random(f"looks {seed}").choice([0.0, 0.0, 0.2, 1.0]),
        halts=Random(f"halts {seed}").choice([0.0, 0.0, 0.0, 0.2, 0.5]),
        travels=Random(f"travelling {seed}").choice([0.0, 0.0, 0.3, 0.8, 1.0]),
        outside=Random(f"outside the log {seed}").choice([0.0, 0.0, 0.0, 0.05]),
        odd=Random(f"odd {seed}").choice([0.0, 0.0, 0.2, 0.6]),
        laters=Random(f"laters {seed}").choice([0.0, 0.0, 0.0, 0.2, 0.6]),
        emits=Random(f"emits {seed}").choice([0.0, 0.0, 0.3, 1.0]),
        ingests=0.0,
        lives=Random(f"lives {seed}").choice([0.0, 0.0, 0.0, 0.2, 0.6]),
        crons=Random(f"crons {seed}").random() < 0.2,
        patch_rounds=Random(f"rounds {seed}").choice([(16, 8, 8)] * 3 + [(3, 2, 1), (1, 1, 1), (1, 2, 3), (2, 1, 1)]),
        epoch_transactions_max=rng.choice([1, 3, 10, 40, 1000]),
        epoch_result_bytes_max=Random(f"bytes {seed}").choice([8 * MIB, 8 * MIB, 16, 1, 1]),
        slice_invocations=rng.choice([1, 2, 5, 64]),
        idempotency_keys_max=rng.choice([100_000, 100_000, 100_000]),
        invocations_max=rng.choice([10_000, 10_000, 10_000, 24, 10]),
        call_bytes=Random(f"bytes {seed}").choice([0, 0, 0, 4, 40]),
        snapshot_interval_s=rng.choice([0.01, 0.05, 0.3, 2.0]),
        log_delay_s=rng.choice([0.0005, 0.005, 0.05]),
        slow_messages=rng.choice([0.0, 0.02, 0.2]),
        faults=tuple(sorted(planned, key=lambda fault: fault.at_s)) if faults else (),
    )
