"""Pairs of transactions that are sent at the same time and want the same unique value: exactly one of each may commit.

Half of the pairs want one value of a unique index, half one primary key. The value is inserted, or given to a row that
the transaction has inserted before; by a request to the shelf itself, or by a call from another one. At the end each
shelf is asked which rows it holds: those of the winners.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final
from uuid import uuid4

from proof.judge.record import REQUEST_SECONDS_MAX, answered
from styx.client.base import Client
from styx.messages import Reply

PAIRS_PER_SHELF: Final = 50
LOSSES: Final = {"name": "UniqueViolation", "id": "RowExists"}
"""How the one that does not commit must end, by what the pair wants."""
PROBLEMS_MAX: Final = 10


@dataclass
class Paired:
    """What became of the pairs. `unknown` are pairs of which one reply was lost for good. `beside` are pairs whose
    transactions ran in one epoch.
    """

    pairs: int = 0
    unknown: int = 0
    beside: int = 0
    problems: list[str] = field(default_factory=list)
    held: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    """By shelf, the (id, name) of the winners."""
    unsure: set[int] = field(default_factory=set)
    """Shelves of pairs that are unknown."""

    def __str__(self) -> str:
        return (
            f"pairs: {self.pairs} of which exactly one must commit, {self.beside} of them in one epoch, "
            f"{self.unknown} unknown; {len(self.problems)} problems"
        )


class _Pair:
    """Pair number `number`: two claims, as arguments of `claim`, to the shelves in `roots`."""

    def __init__(self, number: int, first: int, rng: Random) -> None:
        self.shelf = first + number // PAIRS_PER_SHELF
        self.wants = rng.choice(list(LOSSES))
        ids = (2 * number, 2 * number + (self.wants == "name"))
        names = (2 * number, 2 * number + (self.wants == "id"))
        self.claims = list(zip(ids, names, strict=True))
        renames = [self.wants == "name" and rng.random() < 0.3 for _ in self.claims]
        self.arguments = [(self.shelf, *claim, later) for claim, later in zip(self.claims, renames, strict=True)]
        self.roots = [self.shelf if rng.random() < 0.5 else self.shelf + rng.randint(1, 5) for _ in self.claims]


async def run_pairs(
    clients: Sequence[Client],
    *,
    pairs: int,
    processes: int,
    seed: int,
    first: int,
    enough: asyncio.Event | None = None,
) -> Paired:
    """Sends `pairs` pairs, `processes` at the same time, to shelves whose numbers begin with `first`. Half of the pairs
    go through one client, half through two. No pair begins after `enough` is set.
    """
    done, run, rng = Paired(), str(uuid4()), Random(seed)
    numbers = iter(range(pairs))

    async def process() -> None:
        for number in numbers:
            if enough is not None and enough.is_set():
                return
            through = clients if rng.random() < 0.5 else [rng.choice(clients)]
            await _run(through, _Pair(number, first, rng), f"{run}/{number}", done)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(processes):
            tasks.create_task(process())
    for shelf, held in done.held.items():
        await _look(clients[0], shelf, held, done)
    return done


async def _run(clients: Sequence[Client], pair: _Pair, key: str, done: Paired) -> None:
    sent = []
    for number, (root, arguments) in enumerate(zip(pair.roots, pair.arguments, strict=True)):
        request = partial(clients[number % len(clients)].request, "shelf", root, "claim", *arguments)
        send = partial(request, timeout=REQUEST_SECONDS_MAX, idempotency_key=f"{key}/{number}")
        sent.append(answered(send))
    replies = [reply for reply, _ in await asyncio.gather(*sent)]
    done.pairs += 1
    held = done.held.setdefault(pair.shelf, set())
    if any(reply is None for reply in replies):
        done.unknown += 1
        done.unsure.add(pair.shelf)
        return
    known = [reply for reply in replies if reply is not None]
    done.beside += len({reply.epoch for reply in known}) == 1
    held.update(claim for claim, reply in zip(pair.claims, known, strict=True) if reply.error is None)
    wrong = wrong_with(pair.wants, known)
    if wrong:
        done.problems.append(f"pair {pair.arguments}, that wants the same {pair.wants}: {wrong}")


def wrong_with(wants: str, replies: Sequence[Reply]) -> str:
    """What is wrong with the replies of a pair; empty if one has committed, and one was refused for that."""
    errors = [reply.error for reply in replies if reply.error is not None]
    if len(errors) != len(replies) - 1:
        return f"{len(replies) - len(errors)} have committed"
    if errors[0].type != LOSSES[wants]:
        return f"the one that has not committed ended with {errors[0]}"
    return ""


async def _look(client: Client, shelf: int, held: set[tuple[int, int]], done: Paired) -> None:
    """Asks a shelf what it holds."""
    send = partial(client.request, "shelf", shelf, "claimed", timeout=REQUEST_SECONDS_MAX)
    reply, error = await answered(partial(send, idempotency_key=str(uuid4())))
    if reply is None or reply.error is not None:
        done.problems.append(f"shelf {shelf} does not tell what it holds: {reply.error if reply else error}")
        return
    found = [tuple(row) for row in reply.result]
    if shelf not in done.unsure and (set(found) != held or len(found) != len(held)):
        done.problems.append(f"shelf {shelf} holds {sorted(set(found) ^ held)} too many or too few")
