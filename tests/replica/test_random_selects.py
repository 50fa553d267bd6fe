"""Random queries over the tables of several operators equal what plain Python makes of the decoded rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from math import prod
from random import Random
from typing import Any

import pyarrow as pa

from proof.sql.selects import Row, Rows, Select, plain, random_select
from styx.query.relations import Table
from styx.query.service import Asked, Limits
from styx.query.slots import Slots
from tests.query.conftest import Filled
from tests.query.shop import app
from tests.replica.moments import moment_of, service_over

QUERIES = 240
PRODUCT_MAX = 20_000


def question(rng: Random, tables: Sequence[Table], rows: Rows) -> tuple[Select, Counter[Row]]:
    """A query, and its result."""

    def bound(rng: Random, table: Table, at: int) -> Any:
        return rng.choice(rows[f"{table.schema}.{table.name}"])[at]

    while True:
        chosen = [rng.choice(tables) for _ in range(rng.choice((1, 2, 2, 3, 3)))]
        if 0 < prod(len(rows[f"{each.schema}.{each.name}"]) for each in chosen) <= PRODUCT_MAX:
            select = random_select(rng, chosen, bound)
            return select, select.of(rows)


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
    assert sum(len(each.tables) == 3 for each, _ in questions) > 30
    assert sum(" over (" in each.sql for each, _ in questions) > 30
    assert sum(bool(found) for _, found in questions) > QUERIES // 3

    async def run() -> None:
        async with service_over(lambda: moment) as service:

            async def check(each: Select, rows: Counter[Row]) -> None:
                async with service.run(Asked(each.sql), Limits(300, 60.0, 100_000)) as answer:
                    batches = [batch async for batch in answer.batches]
                names = [str(at) for at in range(len(answer.schema))]
                found = pa.Table.from_batches(batches, answer.schema).rename_columns(names).to_pylist()
                wanted = Counter({plain(row): count for row, count in rows.items()})
                assert Counter(plain(row.values()) for row in found) == wanted, each.sql

            waiting = asyncio.Semaphore(4)

            async def in_turn(each: Select, rows: Counter[Row]) -> None:
                async with waiting:
                    await check(each, rows)

            await asyncio.gather(*(in_turn(*each) for each in questions))

    asyncio.run(run())
