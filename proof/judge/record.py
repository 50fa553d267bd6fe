"""Sends a workload through clients from many processes at once, and records the outcomes.

A request whose outcome was lost is sent again with its idempotency key until there is an answer. So faults leave few
transactions with an unknown outcome, and exactly-once is judged as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from proof.judge.app import Refused, entity_of
from proof.judge.recorded import Recorded, Recorder, Step
from proof.judge.workload import Transaction, Workload
from styx.client.base import Client
from styx.errors import StyxError
from styx.messages import Reply
from styx.model.entity_read import UNKNOWN_ENTITY
from styx.testing.patience import PATIENCE_SECONDS

RESOLVE_SECONDS_MAX: Final = PATIENCE_SECONDS
"""How long one transaction is repeated; longer than a recovery takes."""
REQUEST_SECONDS_MAX: Final = 10.0
"""How long each attempt waits for a reply."""
RETRY_SECONDS: Final = 0.05
"""The pause before the next attempt."""

TRY_AGAIN: Final = frozenset({"overloaded", "unavailable"})
"""Codes of rejections that are not caused by the request."""


class UnexpectedReply(StyxError):
    """A transaction ended in a way that the workload does not allow: neither committed nor refused on purpose."""


async def record(
    clients: Sequence[Client],
    workload: Workload,
    *,
    processes: int,
    transactions: int,
    enough: asyncio.Event | None = None,
) -> Recorded:
    """Runs `transactions` transactions from `processes` concurrent processes, each one after the other.

    The processes take the `clients` in turn. No transaction begins after `enough` is set. Raises `UnexpectedReply`.
    """
    recorder = Recorder(workload.model)
    run = str(uuid4())
    numbers = iter(range(transactions))
    names = iter(range(processes, processes + transactions))

    async def process(name: int) -> None:
        client = clients[name % len(clients)]
        for number in numbers:
            if enough is not None and enough.is_set():
                return
            transaction = workload.draw()
            known = await _run(client, recorder, name, transaction, f"{run}/{number}")
            # As in Jepsen: a transaction with an unknown outcome may still end, at any time. So its process is not
            # used again.
            name = name if known else next(names)

    async with asyncio.TaskGroup() as tasks:
        for name in range(processes):
            tasks.create_task(process(name))
    return recorder.recorded()


async def _run(client: Client, recorder: Recorder, process: int, transaction: Transaction, key: str) -> bool:
    recorder.begin(process, _steps(transaction))
    reply, error = await _reply(client, transaction, key)
    if reply is None:
        recorder.lose(process, _steps(transaction), error)
    elif transaction.shape == "read" and (reply.error is None or reply.error.code == UNKNOWN_ENTITY):
        # The transaction has read that there is no state. Its place says when.
        read = [[transaction.root, reply.result]]
        recorder.commit(process, _steps(transaction, read), (reply.epoch, reply.phase, reply.tid))
    elif reply.error is None:
        recorder.commit(process, _steps(transaction, reply.result), (reply.epoch, reply.phase, reply.tid))
    elif reply.error.type == Refused.__name__ and transaction.fails:
        recorder.fail(process, _steps(transaction), reply.error.type)
    else:
        raise UnexpectedReply(f"{transaction} ended with {reply.error}")
    return reply is not None


async def _reply(client: Client, transaction: Transaction, key: str) -> tuple[Reply | None, str]:
    """The reply, or None with the reason."""
    operator, root = entity_of(transaction.root)
    arguments = transaction[1:]
    deadline = time.monotonic() + RESOLVE_SECONDS_MAX
    error = ""
    while time.monotonic() < deadline:
        try:
            if transaction.shape == "read":
                reply = await client.read(operator, root, timeout=REQUEST_SECONDS_MAX, idempotency_key=key)
            else:
                reply = await client.request(
                    operator, root, "transact", *arguments, timeout=REQUEST_SECONDS_MAX, idempotency_key=key
                )
        except (TimeoutError, ConnectionError) as lost:
            error = f"{type(lost).__name__}: {lost}"
        else:
            if reply.error is None or reply.error.code not in TRY_AGAIN:
                return reply, ""
            # The rejection says nothing about an earlier attempt.
            error = reply.error.message
        await asyncio.sleep(RETRY_SECONDS)
    return None, error


def _steps(transaction: Transaction, done: list[list[object]] | None = None) -> list[Step]:
    """The transaction in the form of a history. Before it is `done`, operations on unknown entities are left out."""
    operations = transaction.operations + transaction.last
    if done is None:
        return [[kind, numbers[0], value] for kind, numbers, value in operations if len(numbers) == 1]
    return [
        [kind, n, read if kind == "r" else value] for (kind, _, value), (n, read) in zip(operations, done, strict=True)
    ]
