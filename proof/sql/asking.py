"""Random queries to a replica over HTTP: most join a table of each of three operators."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any, Final

import aiohttp
import pyarrow as pa

from proof.chaos_app import key_of
from proof.random_rows import IDS
from proof.sql.judge import Answer
from proof.sql.selects import Row, Select, plain, random_select
from proof.sql.states import StateTables
from styx.query.relations import Table

REFUSED_MAX: Final = 10_000
PAUSE_SECONDS: Final = 0.05
_OK: Final = 200
_NOT_NOW: Final = 503
ROW_KEYS: Final = 6
"""Entities of each operator with rows that queries name."""


class Asker:
    """Asks until it has `wanted` answers, which are in `answers`. `away` counts attempts that met no replica, or one
    that was not ready; a replica that refuses a query for another reason is an error.
    """

    def __init__(self, url: str, tables: StateTables, wanted: int, rng: Random) -> None:
        self.answers: list[Answer] = []
        self.away = 0
        self._url = url
        self._tables = tables
        self._rng = rng
        self._left = wanted

    async def run(self, askers: int, pause_s: float) -> None:
        """With `askers` queries at once, each with a pause before the next one."""
        async with aiohttp.ClientSession() as session:
            await asyncio.gather(*(self._ask_on(session, pause_s) for _ in range(askers)))

    async def _ask_on(self, session: aiohttp.ClientSession, pause_s: float) -> None:
        while self._left > 0:
            self._left -= 1
            select = random_question(self._rng, self._tables)
            while (answer := await self._asked(session, select)) is None:
                self.away += 1
                assert self.away < REFUSED_MAX, "the replica does not come back"
                await asyncio.sleep(PAUSE_SECONDS)
            self.answers.append(answer)
            await asyncio.sleep(pause_s * self._rng.uniform(0.5, 1.5))

    async def _asked(self, session: aiohttp.ClientSession, select: Select) -> Answer | None:
        try:
            async with session.post(f"{self._url}/v1/sql", json={"sql": select.sql, "format": "arrow"}) as response:
                body = await response.read()
                if response.status == _NOT_NOW:
                    return None
                assert response.status == _OK, f"{response.status} for {select.sql}: {body[:1_000]!r}"
                epoch = int(response.headers["styx-epoch"])
        except aiohttp.ClientError:
            return None
        return Answer(select, epoch, rows_of(pa.ipc.open_stream(body).read_all()))


def random_question(rng: Random, tables: StateTables) -> Select:
    """A query, in three of four cases over a table of each operator; all of them are joined by something."""
    by_operator = tables.by_operator
    while True:
        if rng.random() < 0.75:
            chosen = [rng.choice(its) for its in by_operator.values()]
        else:
            chosen = [rng.choice(rng.choice([*by_operator.values()])) for _ in range(rng.randrange(1, 3))]
        rng.shuffle(chosen)
        select = random_select(rng, chosen, bound)
        if None not in select.joins:
            return select


def bound(rng: Random, table: Table, at: int) -> Any:
    """A value that the column may have."""
    _, kind = table.columns[at]
    return rng.randrange(IDS) if kind == "int" else key_of(0, rng.randrange(ROW_KEYS))


def rows_of(result: pa.Table) -> Counter[Row]:
    """The rows of a result."""
    columns = [each.to_pylist() for each in result.columns]
    return Counter(map(plain, zip(*columns, strict=True)))
