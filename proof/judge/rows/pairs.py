"""Pairs of transactions that are sent at the same time and want the same unique value: exactly one of each may commit.

A third of the pairs want one value of a unique index of an entity, a third one value of a unique index over the app,
for rows of one entity or of two, and a third one primary key. The value is inserted, or given to a row that the
transaction has inserted before; by a request to the shelf itself, or by a call from another one. At the end each shelf
is asked which rows it holds, and the index over the app which rows it knows: those of the winners.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final, TypeVar
from uuid import uuid4

from proof.judge.record import REQUEST_SECONDS_MAX, answered
from styx.client.base import Client
from styx.messages import Reply

Place = tuple[str, int]
"""The table and the shelf of rows."""
Claim = tuple[int, int]
"""The id and the name of a row."""
T = TypeVar("T")

PAIRS_PER_SHELF: Final = 50
SHELVES_NEAR: Final = 5
"""A claim that comes from another shelf, or wants a row of another one, names one of the next ones."""
LOSSES: Final = {"name": "UniqueViolation", "badge": "UniqueViolation", "id": "RowExists"}
"""How the one that does not commit must end, by what the pair wants."""
RENAMED: Final = 0.3
"""Share of the claims on a name that give it to a row which they have inserted before."""
NAMES_AT_ONCE: Final = 100
"""Of one question to the index over the app."""
PROBLEMS_MAX: Final = 10


class Pair:
    """Pair number `number`: two claims, each of a row of `table` at its place, as a request to its root."""

    def __init__(self, number: int, first: int, rng: Random) -> None:
        near = first + number // PAIRS_PER_SHELF
        self.wants = rng.choice(list(LOSSES))
        self.table = "badges" if self.wants == "badge" else "names"
        shelves = [near, near + (rng.randrange(SHELVES_NEAR) if self.wants == "badge" else 0)]
        ids = (2 * number, 2 * number + (self.wants != "id"))
        names = (2 * number, 2 * number + (self.wants == "id"))
        self.places: list[Place] = [(self.table, shelf) for shelf in shelves]
        self.claims: list[Claim] = list(zip(ids, names, strict=True))
        renames = [self.wants != "id" and rng.random() < RENAMED for _ in self.claims]
        self.arguments = [
            (*place, *claim, later) for place, claim, later in zip(self.places, self.claims, renames, strict=True)
        ]
        self.roots = [shelf if rng.random() < 0.5 else shelf + rng.randint(1, SHELVES_NEAR) for shelf in shelves]

    def __str__(self) -> str:
        return f"pair {self.arguments}, that wants the same {self.wants}"


@dataclass
class Paired:
    """What became of the pairs. `unknown` are those of which one reply was lost for good. `beside` are pairs whose
    transactions ran in one epoch, and `across` those that want rows of two entities.
    """

    pairs: int = 0
    beside: int = 0
    across: int = 0
    unknown: list[Pair] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    held: dict[Place, set[Claim]] = field(default_factory=dict)
    """The claims that have committed, by their place."""

    def __str__(self) -> str:
        return (
            f"pairs: {self.pairs} of which exactly one must commit, {self.beside} of them in one epoch, "
            f"{self.across} of two entities, {len(self.unknown)} unknown; {len(self.problems)} problems"
        )


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

    async def one(number: int) -> None:
        if enough is not None and enough.is_set():
            return
        through = clients if rng.random() < 0.5 else [rng.choice(clients)]
        await _run(through, Pair(number, first, rng), f"{run}/{number}", done)

    await _at_once(range(pairs), one, processes)
    await _look(clients[0], done, processes)
    return done


async def _at_once(what: Iterable[T], do: Callable[[T], Awaitable[None]], processes: int) -> None:
    """Does it for each, for so many at the same time."""
    left = iter(what)

    async def process() -> None:
        for each in left:
            await do(each)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(processes):
            tasks.create_task(process())


async def _run(clients: Sequence[Client], pair: Pair, key: str, done: Paired) -> None:
    sent = []
    for number, (root, arguments) in enumerate(zip(pair.roots, pair.arguments, strict=True)):
        request = partial(clients[number % len(clients)].request, "shelf", root, "claim", *arguments)
        send = partial(request, timeout=REQUEST_SECONDS_MAX, idempotency_key=f"{key}/{number}")
        sent.append(answered(send))
    replies = [reply for reply, _ in await asyncio.gather(*sent)]
    done.pairs += 1
    done.across += len(set(pair.places)) > 1
    for place in pair.places:
        done.held.setdefault(place, set())
    known = [reply for reply in replies if reply is not None]
    if len(known) < len(replies):
        done.unknown.append(pair)
        return
    done.beside += len({reply.epoch for reply in known}) == 1
    for place, claim, reply in zip(pair.places, pair.claims, known, strict=True):
        if reply.error is None:
            done.held[place].add(claim)
    wrong = wrong_with(pair.wants, known)
    if wrong:
        done.problems.append(f"{pair}: {wrong}")


def wrong_with(wants: str, replies: Sequence[Reply]) -> str:
    """What is wrong with the replies of a pair; empty if one has committed, and one was refused for that."""
    errors = [reply.error for reply in replies if reply.error is not None]
    if len(errors) != len(replies) - 1:
        return f"{len(replies) - len(errors)} have committed"
    if errors[0].type != LOSSES[wants]:
        return f"the one that has not committed ended with {errors[0]}"
    return ""


# The state afterwards --------------------------------------------------------------------------------------


async def _look(client: Client, done: Paired, processes: int) -> None:
    """Asks each shelf what it holds, and then the index over the app for each name that a badge has or had."""
    found: dict[Place, list[Claim]] = {}

    async def shelf(place: Place) -> None:
        table, number = place
        rows = await _asked(client, done, number, "claimed", table)
        if rows is not None:
            found[place] = [(id, name) for id, name in rows]

    await _at_once(done.held, shelf, processes)
    done.problems += wrong_rows(done, found)
    badges: dict[int, list[list[int]]] = {}
    for (table, number), rows in sorted(found.items()):
        for id, name in rows if table == "badges" else ():
            badges.setdefault(name, []).append([number, id])
            badges.setdefault(~id, [])  # what it was called before, perhaps

    async def index(names: list[int]) -> None:
        told = await _asked(client, done, names[0], "holders", names)
        for name, holders in zip(names, told or [], strict=told is not None):
            if holders != badges[name]:
                done.problems.append(f"the index over the app has {name} for {holders}, but {badges[name]} have it")

    names = list(badges)
    await _at_once([names[at : at + NAMES_AT_ONCE] for at in range(0, len(names), NAMES_AT_ONCE)], index, processes)


def wrong_rows(done: Paired, found: dict[Place, list[Claim]]) -> list[str]:
    """What is wrong with the rows that the shelves hold. Of an unknown pair one row may be there or none."""
    unsure = {(place, claim) for pair in done.unknown for place, claim in zip(pair.places, pair.claims, strict=True)}
    problems = []
    for (table, shelf), rows in found.items():
        sure = [claim for claim in rows if ((table, shelf), claim) not in unsure]
        held = done.held[table, shelf]
        if set(sure) != held or len(sure) != len(held):
            problems.append(f"{table} of shelf {shelf}: {sorted(set(sure) ^ held)} are too many or too few")
    for pair in done.unknown:
        there = [claim for place, claim in zip(pair.places, pair.claims, strict=True) if claim in found.get(place, ())]
        if len(there) > 1:
            problems.append(f"{pair}: both rows are there")
    return problems


async def _asked(client: Client, done: Paired, shelf: int, function: str, argument: Any) -> Any:
    """The answer of a shelf; None, and a problem, if there is none."""
    send = partial(client.request, "shelf", shelf, function, argument, timeout=REQUEST_SECONDS_MAX)
    reply, error = await answered(partial(send, idempotency_key=str(uuid4())))
    if reply is None or reply.error is not None:
        done.problems.append(f"shelf {shelf} does not answer {function}: {reply.error if reply else error}")
        return None
    return reply.result
