"""A history of shelves in adya's words, so that a checker from outside judges it: each row is a list of its versions.

To write a version is to append its stamp. To see a version is to read the list up to it; a deletion is a version too.
To see that a row is not there is to read the list without it, so a query over a predicate becomes reads of all rows
that it could have given, and a phantom becomes a stale read. That is sound where only one version can be meant. Where
a row that a query did not give may have come later or have gone before, time decides, or the read is left out.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from proof.judge.recorded import Op, Recorded
from proof.judge.recorded import Step as ListStep
from proof.judge.rows.reads import Read, Reads
from proof.judge.rows.steps import Committed, committed_of
from proof.judge.rows.versions import UNBORN, Version, Versions


def as_lists(recorded: Recorded) -> Recorded:
    """The history for adya. What has no row in it is left out, and what contradicts itself in such a way that it cannot
    be told in these words: `proof.judge.rows.dependencies` names that.
    """
    committed = committed_of(recorded)
    versions = Versions(committed)
    steps = _steps(committed, versions, Reads(committed, versions))
    by_end = {transaction.ended: steps[number] for number, transaction in enumerate(committed)}
    ops = [
        msgspec.structs.replace(op, value=by_end.get(op.index, []), error=None)
        for op in recorded.ops
        if op.type in ("invoke", "ok")
    ]
    return Recorded("list-append", _ended(ops), recorded.order)


def _ended(ops: list[Op]) -> list[Op]:
    """Without transactions that have not committed: adya knows from the appends that it sees which did."""
    open_ops: dict[int, int] = {}
    paired: set[int] = set()
    for number, op in enumerate(ops):
        if op.type == "invoke":
            open_ops[op.process] = number
        else:
            paired |= {open_ops[op.process], number}
    return [op for number, op in enumerate(ops) if number in paired]


def _steps(committed: list[Committed], versions: Versions, reads: Reads) -> dict[int, list[ListStep]]:
    """The reads of each transaction, and then its appends: a read of what it had written itself is judged elsewhere."""
    steps: dict[int, list[ListStep]] = defaultdict(list)
    for read in reads.reads:
        chain = versions.chains[read.place]
        seen = _only(read, chain, committed)
        if seen is not None:
            steps[read.reader].append(["r", _name(read.place), [version.stamp for version in chain[1 : seen + 1]]])
    chained = [(place, version) for place, chain in versions.chains.items() for version in chain[1:]]
    for place, version in chained + versions.astray:
        steps[version.writer].append(["append", _name(place), version.stamp])
    return steps


def _only(read: Read, chain: list[Version], committed: list[Committed]) -> int | None:
    """The version that was seen, if by time it can only be one."""
    reader = committed[read.reader]
    low, high = 0, len(chain) - 1
    for i, version in enumerate(chain):
        if version.writer == UNBORN:
            continue
        if version.writer == read.reader or reader.ended < committed[version.writer].began:
            high = min(high, i - 1)
        elif committed[version.writer].ended < reader.began:
            low = i
    allowed = [i for i, each in enumerate(read.allowed) if each]
    possible = [i for i in allowed if low <= i <= high] or allowed[:1]  # where none is possible, each is wrong
    return possible[0] if len(possible) == 1 else None


def _name(place: tuple[int, int]) -> str:
    return f"{place[0]}/{place[1]}"
