"""Sends transactions on shelves and records their outcomes, as `proof.judge.record` does for the other models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from proof.judge.operation import Refused
from proof.judge.record import REQUEST_SECONDS_MAX, UnexpectedReply, answered, in_processes
from proof.judge.recorded import Recorded, Recorder
from proof.judge.rows.request import Function, RowsWorkload, Step, Transaction, steps_of, written_by
from styx.client.base import Client
from styx.messages import Reply

PHASES: Final[dict[Function, tuple[int, ...]]] = {"look": (0,), "transact": (1, 2), "near": (3,)}
"""The phases in which transactions can commit."""


async def record_rows(
    clients: Sequence[Client],
    workload: RowsWorkload,
    *,
    processes: int,
    transactions: int,
    enough: asyncio.Event | None = None,
) -> Recorded:
    """As `proof.judge.record.record`."""
    recorder = Recorder(workload.model)

    async def run(client: Client, process: int, key: str) -> bool:
        return await _run(client, recorder, process, workload.draw(), key)

    await in_processes(clients, run, processes=processes, transactions=transactions, enough=enough)
    return recorder.recorded()


async def _run(client: Client, recorder: Recorder, process: int, transaction: Transaction, key: str) -> bool:
    recorder.begin(process, [])
    arguments = (transaction.operations, transaction.branches, transaction.fails)
    request = partial(client.request, "shelf", transaction.root, transaction.function, *arguments)
    reply, error = await answered(partial(request, timeout=REQUEST_SECONDS_MAX, idempotency_key=key))
    if reply is None:
        recorder.lose(process, written_by(transaction), error)
    elif reply.error is None:
        steps, wrong = _told(transaction, reply)
        recorder.commit(process, steps, (reply.epoch, reply.phase, reply.tid), wrong or None)
    elif reply.error.type == Refused.__name__ and transaction.fails:
        recorder.fail(process, written_by(transaction), reply.error.type)
    else:
        raise UnexpectedReply(f"{transaction} ended with {reply.error}")
    return reply is not None


def _told(transaction: Transaction, reply: Reply) -> tuple[list[Step], str]:
    """The steps of a transaction that has committed, and why its reply contradicts itself."""
    if len(reply.result) != len(transaction.operations):
        return [], f"it did {len(reply.result)} of {len(transaction.operations)} operations"
    allowed = reply.phase in PHASES[transaction.function]
    wrong = "" if allowed else f"the function {transaction.function} committed in phase {reply.phase}"
    return steps_of(transaction, reply.result), wrong
