"""Searches any strict serial order of a history of shelves, without the order that the engine claims.

The method is Elle's, with predicates as Adya defines them. The transactions are nodes of a graph. Its edges say which
came before which in every order that explains the history: `ww` replaced what the other wrote, `wr` saw what the other
wrote, `rw` did not see what the other wrote, `time` ended before the other began. `rw` and `wr` of a query are of a row
that it gave or of one that it did not give: the latter are named `predicate`. A cycle is an anomaly.

A row that a query did not give may have come later or have gone before. The graph itself decides which, where it can:
edges are added until nothing more follows. So what is found is an anomaly for sure. That none is missed is the claimed
order's part, which is a witness (`proof.judge.rows.claimed_order`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from proof.judge.recorded import Recorded
from proof.judge.rows.graph import Graph
from proof.judge.rows.reads import Count, Read, Reads
from proof.judge.rows.steps import Committed, committed_of, stamps_refused
from proof.judge.rows.versions import UNBORN, Version, Versions

ANOMALIES_MAX: Final = 10


def anomalies(recorded: Recorded) -> list[str]:
    """The anomalies that are found, each with its name; empty if there is none."""
    committed = committed_of(recorded)
    versions = Versions(committed)
    reads = Reads(committed, versions)
    found = versions.problems + reads.problems + _refused(recorded, committed)
    return (found or _Search(committed, versions, reads).found())[:ANOMALIES_MAX]


def _refused(recorded: Recorded, committed: list[Committed]) -> list[str]:
    refused = stamps_refused(recorded)
    return [
        f"aborted read: {each} was given version {row[4]}, of a transaction that was refused"
        for each in committed
        for step in each.steps
        if step[0] == "query" and step[2] == "select"
        for row in step[5]
        if row[4] in refused
    ]


class _Search:
    def __init__(self, committed: list[Committed], versions: Versions, reads: Reads) -> None:
        self._committed = committed
        self._chains = versions.chains
        self._reads = reads.reads
        self._counts = reads.counts
        self._before: list[int] = []
        self._graph = Graph(2 * len(committed))  # the second half: moments, one at the end of each transaction
        self._add_time()
        for chain in self._chains.values():
            for older, newer in pairwise(chain[1:]):
                self._graph.add(older.writer, newer.writer, "ww")

    def found(self) -> list[str]:
        """The anomalies."""
        for read in self._reads:
            self._place(read, 0, len(read.allowed) - 1)
        while True:
            order = self._graph.order()
            if order is None:
                return [self._told(self._graph.cycle())]
            self._before = self._graph.before(order, len(self._committed))
            wrong, more = self._round()
            if wrong or not more:
                return wrong

    def _add_time(self) -> None:
        """A chain of moments, so that there are few edges though nearly all transactions end before most others."""
        number = len(self._committed)
        moment, ended = number - 1, 0
        for i in range(number - 1):
            self._graph.add(number + i, number + i + 1, "time")
        began = sorted(range(number), key=lambda each: self._committed[each].began)
        for each in began:
            while ended < number and self._committed[ended].ended < self._committed[each].began:
                moment, ended = number + ended, ended + 1
            if moment >= number:
                self._graph.add(moment, each, "time")
        for i in range(number):
            self._graph.add(i, number + i, "time")

    # One round -------------------------------------------------------------------------------------------------

    def _round(self) -> tuple[list[str], bool]:
        """What cannot be, and whether edges were added."""
        wrong: list[str] = []
        more = False
        for read in self._reads:
            low, high = self._possible(read)
            if not any(read.allowed[low : high + 1]):
                reader = self._committed[read.reader]
                wrong.append(f"{_name(read)}: {reader} {read.asked}; {self._why(read, low, high)}")
            elif not wrong:
                more |= self._place(read, low, high)
        left: list[Count] = []
        for count in self._counts:
            told, implied = self._counted(count)
            wrong += told
            self._reads += implied
            left += [] if implied else [count]
        more |= len(left) < len(self._counts)
        self._counts = left
        return wrong, more

    def _possible(self, read: Read) -> tuple[int, int]:
        """The first and the last version that the reader can have seen, whatever it said."""
        chain, before = self._chains[read.place], self._before
        low, high = 0, len(chain) - 1
        for i, version in enumerate(chain):
            if version.writer == UNBORN:
                continue
            if before[read.reader] >> version.writer & 1:
                low = i
            elif version.writer == read.reader or before[version.writer] >> read.reader & 1:
                return low, i - 1
        return low, high

    def _place(self, read: Read, low: int, high: int) -> bool:
        """Puts the reader behind the first allowed version from `low` to `high`, and before what replaced the last."""
        chain = self._chains[read.place]
        while not read.allowed[low]:
            low += 1
        while not read.allowed[high]:
            high -= 1
        named = "" if read.exact else "predicate "
        added = low > 0 and self._add(chain[low].writer, read.reader, f"{named}wr", read)
        return (high + 1 < len(chain) and self._add(read.reader, chain[high + 1].writer, f"{named}rw", read)) or added

    def _add(self, start: int, end: int, name: str, read: Read) -> bool:
        if start == end or end in self._graph.edges[start] or (self._before and self._before[end] >> start & 1):
            return False
        self._graph.add(start, end, f"{name} of row {read.place[1]} on shelf {read.place[0]}")
        return True

    def _counted(self, count: Count) -> tuple[list[str], list[Read]]:
        """What is wrong with a count, and what follows from it for rows of which it is open whether they matched."""
        sure, open_rows = 0, []
        for place, matching in count.matching.items():
            read = Read(count.reader, place, matching, False, count.asked)
            low, high = self._possible(read)
            if all(matching[low : high + 1]):
                sure += 1
            elif any(matching[low : high + 1]):
                open_rows.append(read)
        if not sure <= count.high or not count.low <= sure + len(open_rows):
            who = self._committed[count.reader]
            return [f"phantom in a count: {who} {count.asked}; {sure} to {sure + len(open_rows)} are possible"], []
        if sure == count.high:
            return [], [read._replace(allowed=tuple(not each for each in read.allowed)) for read in open_rows]
        return [], open_rows if sure + len(open_rows) == count.low else []

    # Telling ---------------------------------------------------------------------------------------------------

    def _why(self, read: Read, low: int, high: int) -> str:
        chain = self._chains[read.place]
        possible = " or ".join(_shown(version) for version in chain[low : high + 1])
        return f"row {read.place[1]} was then {possible}"

    def _told(self, cycle: list[int]) -> str:
        names = [self._graph.edges[start][end] for start, end in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
        told = []
        for node, name in zip(cycle, names, strict=True):
            if node < len(self._committed):
                told.append(f"{self._committed[node]} -{name}->")
        return f"{cycle_name(names)}: {' '.join(told)} and back"


def cycle_name(names: list[str]) -> str:
    """Adya's name of a cycle with edges of such names."""
    anti = [name for name in names if "rw" in name.split()]
    if not anti:
        name = "G1c" if any("wr" in name.split() for name in names) else "G0"
    else:
        name = "G-single" if len(anti) == 1 else "G2"
    predicate = "-predicate" if any("predicate" in name for name in names) else ""
    return name + predicate + ("-realtime" if "time" in names else "")


def _name(read: Read) -> str:
    return "stale read" if read.exact else "phantom"


def _shown(version: Version) -> str:
    return "not there" if version.row is None else f"version {version.stamp}, {version.row[:4]}"
