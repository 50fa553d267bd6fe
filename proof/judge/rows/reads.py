"""What each transaction has read: which versions of which rows it can have seen.

A query reads every row of its shelf. Of a row that it gave it saw one version, or any that matches if it told only the
key. Of a row that it did not give it saw one that does not match: the row was not there, or elsewhere. So a query over
a predicate is a read of many rows, and a phantom is a read that no order explains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from proof.judge.rows.query import ID, STAMP, Conditions, Row, matches, position
from proof.judge.rows.steps import Committed, seen_by_echoes, version
from proof.judge.rows.versions import Place, Version, Versions


class Read(NamedTuple):
    """Transaction `reader` saw one of those versions of the row at `place` that are `allowed`. `exact`: it was given
    the version, or replaced it. `asked` tells the query.
    """

    reader: int
    place: Place
    allowed: tuple[bool, ...]
    exact: bool
    asked: str


class Count(NamedTuple):
    """Transaction `reader` was told that of the rows at `matching` between `low` and `high` matched; for each row is
    said which of its versions do.
    """

    reader: int
    matching: dict[Place, tuple[bool, ...]]
    low: int
    high: int
    asked: str


class Reads:
    """All reads of a history. `problems` are replies that no order can explain: a query that contradicts itself, what
    its own transaction had done before, or gives what nobody left there.
    """

    def __init__(self, committed: list[Committed], versions: Versions) -> None:
        self.reads: list[Read] = []
        self.counts: list[Count] = []
        self.problems: list[str] = []
        self._versions = versions
        seen = seen_by_echoes(committed)
        for number, transaction in enumerate(committed):
            _Reader(self, versions, number, transaction, seen).read()


class _Reader:
    """One transaction, step by step. `own` are the versions that it has written so far."""

    def __init__(
        self, found: Reads, versions: Versions, number: int, transaction: Committed, seen: dict[int, str]
    ) -> None:
        self._found = found
        self._versions = versions
        self._number = number
        self._transaction = transaction
        self._seen = seen
        self._own: dict[Place, Row | None] = {}

    def read(self) -> None:
        for step in self._transaction.steps:
            kind, shelf, *arguments = step
            if kind == "query":
                self._query(shelf, *arguments)
            elif kind == "write":
                id, replaced, _, row = arguments
                self._point((shelf, id), replaced, f"replaced version {replaced} of row {id} on shelf {shelf}")
                self._own[shelf, id] = row
            else:
                self._echo(shelf, *arguments)

    def _query(self, shelf: int, kind: str, conditions: Conditions, limit: int, saw: Any) -> None:
        asked = f"was told {saw} by {kind} {conditions}" + (f" with limit {limit}" if limit else "")
        asked = f"{asked} on shelf {shelf}"
        if kind == "get":
            self._point((shelf, conditions["id"]), saw, asked)
        elif kind == "select":
            self._select(shelf, conditions, limit, saw, asked)
        elif kind == "keys":
            self._all(shelf, lambda row: matches(conditions, row), dict.fromkeys(saw), asked)
        elif not saw:  # a count of 0, or nothing that exists
            self._all(shelf, lambda row: matches(conditions, row), {}, asked)
        else:
            self._count(shelf, conditions, saw, asked)

    def _select(self, shelf: int, conditions: Conditions, limit: int, saw: list[Row], asked: str) -> None:
        places = [position(conditions, row) for row in saw]
        if places != sorted(set(places)) or not all(matches(conditions, row) for row in saw):
            self._problem("contradiction", f"{asked}: rows that do not match, or not in order")
        for row in saw:
            chain = self._versions.chains.get((shelf, row[ID]), [])
            if any(v.stamp == row[STAMP] and v.row is not None and version(v.row) != version(row) for v in chain):
                self._problem("torn row", f"{asked}: row {row[ID]} is not as version {row[STAMP]} was written")
        self._all(shelf, _bounded(conditions, limit, places), {row[ID]: row[STAMP] for row in saw}, asked)

    def _echo(self, shelf: int, conditions: Conditions, row: Row) -> None:
        """A query, and a row that says what it found. If nobody has read that row, nothing is known."""
        if row[ID] in self._seen:
            stamps = [int(stamp) for stamp in self._seen[row[ID]].split(",") if stamp]
            asked = f"saw {stamps} by select {conditions} on shelf {shelf}"
            saw = {self._versions.places[stamp][1]: stamp for stamp in stamps if stamp in self._versions.places}
            if len(saw) < len(stamps):
                self._problem("unknown version", f"{asked}, of which no committed transaction wrote all")
            self._all(shelf, lambda row: matches(conditions, row), saw, asked)
        self._point((shelf, row[ID]), None, f"inserted row {row[ID]} on shelf {shelf}")
        self._own[shelf, row[ID]] = row

    # Parts -----------------------------------------------------------------------------------------------------

    def _point(self, place: Place, stamp: int | None, asked: str) -> None:
        """Read the version with a stamp; None: the row was not there."""
        if stamp is None:
            self._row(place, lambda version: version.row is None, False, asked)
        else:
            self._row(place, lambda version: version.stamp == stamp and version.row is not None, True, asked)

    def _all(self, shelf: int, matching: Callable[[Row], bool], saw: Mapping[int, int | None], asked: str) -> None:
        """Read all rows of a shelf, and saw those with the given ids and stamps; None: with any stamp."""
        for id in saw:
            if (shelf, id) not in self._versions.chains:
                self._problem("unknown version", f"{asked}, but no committed transaction wrote row {id} there")
        for place in self._versions.by_shelf[shelf]:
            if place[1] not in saw:
                self._row(place, lambda version: version.row is None or not matching(version.row), False, asked)
            elif (stamp := saw[place[1]]) is None:
                self._row(place, lambda version: version.row is not None and matching(version.row), False, asked)
            else:
                self._point(place, stamp, asked)

    def _row(self, place: Place, allows: Callable[[Version], bool], exact: bool, asked: str) -> None:
        if place in self._own:
            row = self._own[place]
            if not allows(Version(row, row[STAMP] if row else None, self._number)):
                self._problem("not its own write", f"{asked}, but had itself written {row} as row {place[1]}")
            return
        allowed = tuple(allows(version) for version in self._others(place))
        if not any(allowed):
            self._problem("unknown version", f"{asked}, but no committed transaction left row {place[1]} like that")
        elif not all(allowed):
            self._found.reads.append(Read(self._number, place, allowed, exact, asked))

    def _count(self, shelf: int, conditions: Conditions, saw: int | bool, asked: str) -> None:
        own = sum(matches(conditions, row) for (on, _), row in self._own.items() if on == shelf)
        matching = {
            place: tuple(matches(conditions, version.row) for version in self._others(place))
            for place in self._versions.by_shelf[shelf]
            if place not in self._own
        }
        some = {place: each for place, each in matching.items() if any(each)}
        low = max(0, int(saw) - own)
        high = len(some) if saw is True else int(saw) - own
        if high < 0:
            self._problem("not its own write", f"{asked}, but had itself written {own} rows that match")
        else:
            self._found.counts.append(Count(self._number, some, low, high, asked))

    def _others(self, place: Place) -> list[Version]:
        """The versions of a row; one that the transaction itself writes later cannot be read before."""
        return self._versions.chains.get(place) or [Version(None, None, -1)]

    def _problem(self, name: str, what: str) -> None:
        self._found.problems.append(f"{name}: {self._transaction} {what}")


def _bounded(conditions: Conditions, limit: int, places: list[tuple[int, ...]]) -> Callable[[Row], bool]:
    """What a query asks that has a limit: no more than up to the last row that it gave."""
    if limit and len(places) == abs(limit):
        if limit > 0:
            return lambda row: matches(conditions, row) and position(conditions, row) <= places[-1]
        return lambda row: matches(conditions, row) and position(conditions, row) >= places[0]
    return lambda row: matches(conditions, row)
