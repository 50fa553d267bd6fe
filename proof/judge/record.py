"""Sends a workload through clients from many processes at once, and records the outcomes.

A request whose outcome was lost is sent again with its idempotency key until there is an answer. So faults leave few
transactions with an unknown outcome, and exactly-once is judged as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final
from uuid import uuid4

from proof.judge.app import entity_of
from proof.judge.operation import WRITES, Done, Refused, contradiction
from proof.judge.recorded import Kind, Recorded, Recorder, Step, sequence_of
from proof.judge.workload import Function, Transaction, Workload
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

PHASES: Final[dict[Function, tuple[int, ...]]] = {
    "read": (0,),
    "look": (0,),
    "transact": (1, 2),
    "near": (3, 1, 2),  # 1 or 2 if it has left its slot
}
"""The phases in which transactions can commit."""


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

    async def run(client: Client, process: int, key: str) -> bool:
        return await _run(client, recorder, process, workload.draw(), key)

    await in_processes(clients, run, processes=processes, transactions=transactions, enough=enough)
    return recorder.recorded()


async def in_processes(
    clients: Sequence[Client],
    run: Callable[[Client, int, str], Awaitable[bool]],
    *,
    processes: int,
    transactions: int,
    enough: asyncio.Event | None = None,
) -> None:
    """Calls `run(client, process, idempotency key)` as `record` says. It gives False if the outcome is not known."""
    run_id = str(uuid4())
    numbers = iter(range(transactions))
    names = iter(range(processes, processes + transactions))

    async def process(name: int) -> None:
        client = clients[name % len(clients)]
        for number in numbers:
            if enough is not None and enough.is_set():
                return
            known = await run(client, name, f"{run_id}/{number}")
            # As in Jepsen: a transaction with an unknown outcome may still end, at any time. So its process is not
            # used again.
            name = name if known else next(names)

    async with asyncio.TaskGroup() as tasks:
        for name in range(processes):
            tasks.create_task(process(name))


async def _run(client: Client, recorder: Recorder, process: int, transaction: Transaction, key: str) -> bool:
    recorder.begin(process, _known_before(transaction))
    reply, error = await answered(partial(_reply, client, transaction, key))
    if reply is None:
        recorder.lose(process, _known_before(transaction), error)
    elif transaction.function == "read" and (reply.error is None or reply.error.code == UNKNOWN_ENTITY):
        # The transaction has read that there is no state. Its place says when.
        _commit(recorder, process, transaction, reply, [[transaction.root, reply.result]])
    elif reply.error is None:
        _commit(recorder, process, transaction, reply, reply.result)
    elif reply.error.type == Refused.__name__ and transaction.fails:
        recorder.fail(process, _known_before(transaction), reply.error.type)
    else:
        raise UnexpectedReply(f"{transaction} ended with {reply.error}")
    return reply is not None


def _commit(recorder: Recorder, process: int, transaction: Transaction, reply: Reply, done: list[Done]) -> None:
    operations = transaction.operations + transaction.last
    wrong = contradiction(operations, done)
    if reply.phase not in PHASES[transaction.function]:
        wrong = f"a transaction of the function {transaction.function} committed in phase {reply.phase}"
    steps = [
        step
        for (kind, _, _), (n, value) in zip(operations, done, strict=False)
        for step in steps_of(recorder.model, kind, n, value)
    ]
    recorder.commit(process, steps, (reply.epoch, reply.phase, reply.tid), wrong or None)


async def _reply(client: Client, transaction: Transaction, key: str) -> Reply:
    operator, root = entity_of(transaction.root)
    if transaction.function == "read":
        return await client.read(operator, root, timeout=REQUEST_SECONDS_MAX, idempotency_key=key)
    arguments = (transaction.shape, transaction.operations, transaction.last, transaction.fails)
    return await client.request(
        operator, root, transaction.function, *arguments, timeout=REQUEST_SECONDS_MAX, idempotency_key=key
    )


async def answered(send: Callable[[], Awaitable[Reply]]) -> tuple[Reply | None, str]:
    """Sends a request again and again, until there is a reply, or gives None with the reason. `send` must always use
    the same idempotency key.
    """
    deadline = time.monotonic() + RESOLVE_SECONDS_MAX
    error = ""
    while time.monotonic() < deadline:
        try:
            reply = await send()
        except (TimeoutError, ConnectionError) as lost:
            error = f"{type(lost).__name__}: {lost}"
        else:
            if reply.error is None or reply.error.code not in TRY_AGAIN:
                return reply, ""
            # The rejection says nothing about an earlier attempt.
            error = reply.error.message
        await asyncio.sleep(RETRY_SECONDS)
    return None, error


def _known_before(transaction: Transaction) -> list[Step]:
    """The transaction in the form of a history before it is done, without the parts that its reads will decide."""
    steps: list[Step] = []
    for kind, numbers, value in transaction.operations + transaction.last:
        if len(numbers) > 1 or (kind in WRITES and not isinstance(value, int)):
            continue
        n = numbers[0]
        steps.append([kind, n, value] if kind in WRITES else ["r", n if kind == "r" else sequence_of(n), None])
    return steps


def steps_of(model: Kind, kind: str, n: int, value: Any) -> list[Step]:
    """An operation that is done, in the form of a history: `value` was read, written or taken.

    A history knows no sequences. So to take number k is to read the numbers up to k - 1 and to add k, if entities are
    lists; if they are registers, to read k - 1 and to write k.
    """
    if kind not in ("next", "last"):
        return [[kind, n, value]]
    taken = value - 1 if kind == "next" else value
    numbers = list(range(1, taken + 1)) if model == "list-append" else taken
    read: Step = ["r", sequence_of(n), numbers or None]
    if kind == "last":
        return [read]
    return [read, ["append" if model == "list-append" else "w", sequence_of(n), value]]
