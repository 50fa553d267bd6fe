"""One recording of each kind of history: which workload it has, and who records and judges it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from proof.judge.record import record
from proof.judge.recorded import KINDS, Kind, Recorded
from proof.judge.rows.record import record_rows
from proof.judge.rows.request import RowsWorkload
from proof.judge.workload import Workload
from styx.client.base import Client

NUMBERS_PER_KIND: Final = 1_000_000
"""Entities of each kind of history in one deployment. None is shared: one cannot be both a register and a list."""


async def recorded_of(
    kind: Kind,
    clients: Sequence[Client],
    *,
    keys: int,
    seed: int,
    first: int,
    processes: int,
    transactions: int,
    enough: asyncio.Event | None = None,
) -> Recorded:
    """Records a history of a kind, as `proof.judge.record.record` does. `keys` entities are in use at a time; the
    numbers of those of all kinds begin with `first`.
    """
    first += KINDS.index(kind) * NUMBERS_PER_KIND
    if kind == "rows":
        rows = RowsWorkload(keys, seed, first)
        return await record_rows(clients, rows, processes=processes, transactions=transactions, enough=enough)
    workload = Workload(kind, keys, seed, first)
    return await record(clients, workload, processes=processes, transactions=transactions, enough=enough)
