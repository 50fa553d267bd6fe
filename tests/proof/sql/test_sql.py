"""Answers in SQL equal the serial replay at their epoch: on a real cluster whose workers are killed, and not if the
replica that answers is broken.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pytest

import styx
from proof import spinning
from proof.chaos_app import PROGRAMMED, app
from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.faults import APP
from proof.sql.__main__ import run
from proof.sql.asking import random_question, rows_of
from proof.sql.judge import Answer, WrongAnswer, judge
from proof.sql.run import RunOptions, requests
from proof.sql.states import StateAt, StateTables
from styx.model.limits import Limits
from styx.query.service import Asked
from styx.query.service import Limits as QueryLimits
from styx.replica.follower import Moment
from styx.replica.state import EpochState, SlotTable
from styx.testing import check_history
from styx.testing.recorded_history import read_history_of
from tests.real_services import RealKafka, RealMinio
from tests.replica.moments import moment_of, service_over

pytestmark = pytest.mark.slow

QUERIES = 60
LIMITS = QueryLimits(memory_mib=300, seconds=60.0, rows=100_000)
SLOTS = 4
ROUNDS = 3
REQUESTS = 150
OF_A_ROUND = 20
"""Queries."""


def test_a_cluster_whose_worker_is_killed(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> None:
    name = f"sql-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app=APP,
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path,
        workers=3,
        snapshot_interval_s=1.0,
    )
    found = asyncio.run(run(ClusterUnderTest(options), RunOptions(QUERIES, 1), Random(name)))
    judged = found.judged()
    assert found.killed == ["worker"]
    assert judged.answers > 0.9 * QUERIES
    assert judged.three > QUERIES / 3
    assert min(judged.windows, judged.groups, judged.filled) > 5
    assert judged.epochs > 3


class Recorded(NamedTuple):
    """A directory's moments, one behind each round of requests; the replayed states of their epochs and the next."""

    tables: StateTables
    moments: list[Moment]
    states: dict[int, StateAt]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    directory = tmp_path_factory.mktemp("sql")
    tables = StateTables(app, [operator.name for operator in PROGRAMMED])
    moments = asyncio.run(played(directory))
    epochs = [moment.state.epoch + behind for moment in moments for behind in (0, 1)]
    states = {epoch: StateAt(tables, epoch) for epoch in epochs}
    history = read_history_of(directory, SLOTS)
    check_history(
        app,
        history.requests,
        history.replies,
        limits=Limits(),
        n_slots=SLOTS,
        externals=history.externals,
        around=spinning.as_replied,
        reads=states.values(),
    )
    return Recorded(tables, moments, states)


async def played(directory: Path) -> list[Moment]:
    make = requests(Random("played"), SLOTS)
    moments = []
    async with styx.embedded(app, directory, n_slots=SLOTS, snapshot_interval=1000.0, keep_log=True) as client:
        for _ in range(ROUNDS):
            made = [make() for _ in range(REQUESTS)]
            asked = (client.request(each.operator, each.key, each.function, *each.arguments) for each in made)
            await asyncio.gather(*asked, return_exceptions=True)
            assert await client.engine.snapshot()
            moments.append(moment_of(directory))
    return moments


def as_it_is(state: EpochState, later: EpochState) -> EpochState:
    return state


def without_a_row(state: EpochState, later: EpochState) -> EpochState:
    """A row of `marks` is missing."""
    slot, tables = next((slot, tables) for slot, tables in state.slots.items() if "text/marks" in tables)
    entries = dict(tables["text/marks"].entries())
    del entries[min(entries)]
    changed = {**tables, "text/marks": SlotTable((entries,), tables["text/marks"].bytes)}
    return replace(state, slots={**state.slots, slot: changed})


def said_to_be_of_the_next_epoch(state: EpochState, later: EpochState) -> EpochState:
    return replace(state, epoch=state.epoch + 1)


def with_a_slot_of_another_epoch(state: EpochState, later: EpochState) -> EpochState:
    slot = next(slot for slot, tables in state.slots.items() if tables.keys() >= {"text/marks", "text"})
    return replace(state, slots={**state.slots, slot: later.slots[slot]})


@pytest.mark.parametrize("changed", [without_a_row, said_to_be_of_the_next_epoch, with_a_slot_of_another_epoch])
def test_a_broken_replica_is_found(recorded: Recorded, changed: Callable[[EpochState, EpochState], EpochState]) -> None:
    with pytest.raises(WrongAnswer):
        asyncio.run(asked(recorded, changed))


def test_a_replica_as_it_is(recorded: Recorded) -> None:
    asyncio.run(asked(recorded, as_it_is))


async def asked(recorded: Recorded, changed: Callable[[EpochState, EpochState], EpochState]) -> None:
    """Asks a replica whose state is `changed` at each moment but the last one, and judges it."""
    rng = Random("asked")
    answers: list[Answer] = []
    for moment, later in pairwise(recorded.moments):
        shown = moment._replace(state=changed(moment.state, later.state))
        async with service_over(lambda shown=shown: shown) as service:  # type: ignore[misc]
            for _ in range(OF_A_ROUND):
                select = random_question(rng, recorded.tables)
                async with service.run(Asked(select.sql), LIMITS) as answer:
                    result = pa.Table.from_batches([batch async for batch in answer.batches], answer.schema)
                    answers.append(Answer(select, answer.epoch, rows_of(result)))
    judge(answers, {epoch: state.rows for epoch, state in recorded.states.items()})
