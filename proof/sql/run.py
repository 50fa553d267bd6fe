"""A run on real processes: random programs over three operators with tables, faults, and a replica that is asked; then
the audit of the cluster, whose serial replay gives the rows of each epoch that an answer names.

    python -m proof.sql --queries 1000 --kills 8
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Final, NamedTuple

import msgspec

from proof.chaos_app import PROGRAMMED, key_of
from proof.cluster import ClusterUnderTest, LoadOptions, SteadyLoad, chaos_requests
from proof.cluster.audit import Audit, AuditFailed, audit
from proof.cluster.load import Planned
from proof.cluster.recorded import whole_stream
from proof.random_requests import request_key
from proof.random_rows import row_step
from proof.sql.asking import ROW_KEYS, Asker
from proof.sql.judge import Answer, Judged, judge
from proof.sql.states import StateAt, StateTables
from styx.log.base import Stream
from styx.sequencer.epoch_record import EpochRecord, decode

ROWS_SHARE: Final = 0.6
"""Of the requests: those that do nothing but write rows."""
STEPS_MAX: Final = 4
STEADY_SECONDS: Final = 1.0
"""Before the first fault."""


class RunOptions(NamedTuple):
    """How many `queries`, by so many `askers`, each with a pause between two; `kills` of processes, evenly among the
    answers; requests a second.
    """

    queries: int
    kills: int
    askers: int = 3
    pause_s: float = 0.1
    rate: float = 60.0


class Recorded(NamedTuple):
    """What a run has left: the answers, the rows of each epoch that they name, the epochs that were recorded twice,
    which processes were killed, and the cluster's audit.
    """

    answers: list[Answer]
    states: dict[int, StateAt]
    twice: frozenset[int]
    killed: list[str]
    away: int
    audit: Audit

    def judged(self) -> Judged:
        """The judgement; raises `WrongAnswer`."""
        return judge(self.answers, {epoch: state.rows for epoch, state in self.states.items()}, self.twice)


async def recorded(cluster: ClusterUnderTest, options: RunOptions, rng: Random) -> Recorded:
    """Runs a cluster that has not been started, and its replica. Raises `SerializabilityViolation` if the cluster
    itself is wrong, and `ChildFailed`.
    """
    tables = StateTables(cluster.app, [operator.name for operator in PROGRAMMED])
    asker = Asker(cluster.replica_url, tables, options.queries, rng)
    await cluster.start()
    await cluster.start_replica()
    async with cluster.client() as client:
        make = requests(rng, cluster.options.slots)
        load = SteadyLoad(client, None, dict(cluster.app.operators), make, LoadOptions(options.rate), rng)
        load.start()
        asking = asyncio.create_task(asker.run(options.askers, options.pause_s))
        try:
            killed = await _struck(cluster, asker, asking, options, rng)
            await asking
        finally:
            asking.cancel()
        await load.stop()
    cluster.check()
    if load.contradictions:
        raise AuditFailed("\n".join(load.contradictions))
    states = {epoch: StateAt(tables, epoch) for epoch in {answer.epoch for answer in asker.answers}}
    found = await audit(cluster, load.replies, states.values())
    twice = await asyncio.to_thread(recorded_twice, cluster)
    return Recorded(asker.answers, states, twice, killed, asker.away, found)


async def _struck(
    cluster: ClusterUnderTest, asker: Asker, asking: asyncio.Task[None], options: RunOptions, rng: Random
) -> list[str]:
    """Kills one process after the other while queries are asked; says which."""
    killed = []
    for number in range(1, options.kills + 1):
        while len(asker.answers) < number * options.queries // (options.kills + 1) and not asking.done():
            cluster.check()
            await asyncio.sleep(0.1)
        victim = "worker" if number % 4 else rng.choice(("coordinator", "replica"))
        await _VICTIMS[victim](cluster, rng)
        killed.append(victim)
    return killed


async def _kill_worker(cluster: ClusterUnderTest, rng: Random) -> None:
    await cluster.replace_worker(rng.randrange(cluster.options.workers))


async def _kill_coordinator(cluster: ClusterUnderTest, rng: Random) -> None:
    await cluster.replace_coordinator()


async def _kill_replica(cluster: ClusterUnderTest, rng: Random) -> None:
    assert cluster.replica is not None
    await cluster.replica.kill()
    await cluster.start_replica()


_VICTIMS: Final[dict[str, Callable[[ClusterUnderTest, Random], Awaitable[None]]]] = {
    "worker": _kill_worker,
    "coordinator": _kill_coordinator,
    "replica": _kill_replica,
}


def requests(rng: Random, n_slots: int) -> Callable[[], Planned]:
    """Requests of all kinds; most of them write rows of a few entities."""
    any_kind = chaos_requests(rng, n_slots)

    def make() -> Planned:
        if rng.random() >= ROWS_SHARE:
            return any_kind()
        index = rng.randrange(len(PROGRAMMED))
        key = request_key(key_of(index, rng.randrange(ROW_KEYS)))
        steps = [row_step(rng) for _ in range(rng.randint(1, STEPS_MAX))]
        arguments = msgspec.msgpack.decode(msgspec.msgpack.encode([steps]))
        operator = PROGRAMMED[index].name
        return Planned(operator, tuple(key) if isinstance(key, list) else key, "run", tuple(arguments))

    return make


def recorded_twice(cluster: ClusterUnderTest) -> frozenset[int]:
    """The epochs of which two generations have left records. Blocks."""
    reader = cluster.reader()
    try:
        parts: Iterable[list[object]] = (
            [decode(record.payload) for record in part] for part in whole_stream(reader, Stream.EPOCHS).values()
        )
        entries = [entry for part in parts for entry in part if isinstance(entry, EpochRecord)]
    finally:
        reader.close()
    generations: dict[int, set[int]] = {}
    for entry in entries:
        generations.setdefault(entry.epoch, set()).add(entry.generation)
    return frozenset(epoch for epoch, its in generations.items() if len(its) > 1)
