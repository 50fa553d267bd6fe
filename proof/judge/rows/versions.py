"""All versions of each row of a history, in their order, and who wrote them.

Each write tells which version it replaced, so the order is not guessed: a row begins with not being there, and each
version follows the one that its writer replaced.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

from proof.judge.rows.query import Row
from proof.judge.rows.steps import Committed

Place = tuple[int, int]
"""The shelf and the id of a row."""
UNBORN: Final = -1
"""The writer of the version that is first: the row is not there."""


class Version(NamedTuple):
    """A version; `row` is None where the row is not there. `writer` is the number of the transaction."""

    row: Row | None
    stamp: int | None
    writer: int


class Write(NamedTuple):
    """A version, and the stamp of the one that it replaced; None: the row was not there."""

    replaced: int | None
    version: Version


class Versions:
    """The rows of a history. `chains` holds the versions of each row that other transactions can see: of what one
    transaction wrote to a row, the last.
    """

    def __init__(self, committed: list[Committed]) -> None:
        self.chains: dict[Place, list[Version]] = {}
        self.by_shelf: dict[int, list[Place]] = defaultdict(list)
        self.astray: list[tuple[Place, Version]] = []
        """Versions that are in no chain, because another one has replaced the same version."""
        self.problems: list[str] = []
        self.places: dict[int, Place] = {}
        """The row of each stamp."""
        for place, writes in _writes(committed).items():
            self.by_shelf[place[0]].append(place)
            self.chains[place] = self._chain(committed, place, writes)
            self.places.update({write.version.stamp: place for write in writes if write.version.stamp is not None})

    def _chain(self, committed: list[Committed], place: Place, writes: list[Write]) -> list[Version]:
        after: dict[int | None, Version] = {}
        for replaced, version in writes:
            other = after.setdefault(replaced, version)
            if other is not version:
                self.astray.append((place, version))
                first, second = committed[other.writer], committed[version.writer]
                self.problems.append(
                    f"lost update: {first} and {second} both replaced version {replaced} of row {place[1]} on shelf "
                    f"{place[0]}"
                )
        chain = [Version(None, None, UNBORN)]
        while chain[-1].stamp in after:
            chain.append(after.pop(chain[-1].stamp))
        for replaced, version in after.items():
            self.problems.append(
                f"unknown version: {committed[version.writer]} replaced version {replaced} of row {place[1]} on shelf "
                f"{place[0]}, which no committed transaction has left there"
            )
        last = len(chain) - 1
        return [version for i, version in enumerate(chain) if i == last or chain[i + 1].writer != version.writer]


def _writes(committed: list[Committed]) -> dict[Place, list[Write]]:
    found: dict[Place, list[Write]] = defaultdict(list)
    for number, transaction in enumerate(committed):
        for kind, shelf, *arguments in transaction.steps:
            if kind == "write":
                id, replaced, stamp, row = arguments
                found[shelf, id].append(Write(replaced, Version(row, stamp, number)))
            elif kind == "echo":
                row = arguments[-1]
                found[shelf, row[0]].append(Write(None, Version(row, row[4], number)))
    return found
