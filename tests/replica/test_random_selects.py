"""Random queries over the tables of several operators equal what plain Python makes of the decoded rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from styx.query.service import Asked, Limits
from styx.query.slots import Slots
from tests.query.conftest import Filled
from tests.query.shop import app
from tests.replica.moments import moment_of, service_over
from tests.replica.random_selects import Question, Row, question

QUERIES = 240


def plain(row: Any) -> Row:
    """Decimals by their value, whatever digits they have."""
    return tuple(int(each) if isinstance(each, Decimal) and each == int(each) else each for each in row)


def test_queries_equal_recomputation(filled: Filled) -> None:
    moment = moment_of(filled.directory, app)
    source = Slots(filled.source)  # the snapshot is read anew, without a replica
    rows = {
        f"{each.table.schema}.{each.table.name}": [
            tuple(record)
            for entries in source.all_entries(each.dataset.tables)
            for record in each.dataset.records(entries)
        ]
        for each in moment.relations
    }
    tables = [each.table for each in moment.relations]
    rng = Random("selects")
    questions = [question(rng, tables, rows) for _ in range(QUERIES)]
    assert sum(each.sql.count(" t2") > 0 for each in questions) > 30
    assert sum(bool(each.rows) for each in questions) > QUERIES // 3

    async def run() -> None:
        async with service_over(lambda: moment) as service:

            async def check(each: Question) -> None:
                async with service.run(Asked(each.sql), Limits(300, 60.0, 100_000)) as answer:
                    batches = [batch async for batch in answer.batches]
                names = [str(at) for at in range(len(answer.schema))]
                found = pa.Table.from_batches(batches, answer.schema).rename_columns(names).to_pylist()
                wanted = Counter({plain(row): count for row, count in each.rows.items()})
                assert Counter(plain(row.values()) for row in found) == wanted, each.sql

            waiting = asyncio.Semaphore(4)

            async def in_turn(each: Question) -> None:
                async with waiting:
                    await check(each)

            await asyncio.gather(*map(in_turn, questions))

    asyncio.run(run())
