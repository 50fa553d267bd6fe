"""The trace of a replay: what each transaction has answered and written, so that two replays can be held against each
other, transaction by transaction.

A trace is a file with a record for each epoch. Values are in it as digests alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from styx.audit.records import Budget, RecordWriter, read_records
from styx.audit.transactions import EndedTransactions, EpochTransactions
from styx.messages import ReplyRecord, encode_reply
from styx.model.table_names import holds_events, owner_of
from styx.state.table import NEWEST
from styx.values.codec import shown
from styx.worker.executor import Executor
from styx.worker.footprint import Footprint
from styx.worker.local_phase import LocalPhase
from styx.worker.lock_rounds import LockRounds
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot

TRACE_BYTES_MAX: Final = 16 * 1024**3
"""Of one trace, on the disk."""
_DIGEST_BYTES: Final = 8

Entity = tuple[int, str, str]
"""(slot, table, key as text)."""


class Write(msgspec.Struct, array_like=True, frozen=True):
    """What one transaction has left in an entry, or may have: in phase 3 all transactions that name the entity count.
    `functions` are its functions that ran on the entity, or its root function.
    """

    entity: Entity
    phase: int
    tid: int
    digest: bytes
    functions: list[str]


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """The reply to one request."""

    phase: int
    tid: int
    sequence: int
    digest: bytes
    function: str


class TracedEpoch(msgspec.Struct, array_like=True, frozen=True):
    """What an epoch has answered and written."""

    epoch: int
    answers: list[Answer]
    writes: list[Write]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TracedEpoch).decode


def traced(file: Path) -> Iterator[TracedEpoch]:
    """The epochs of a trace, in their order."""
    return map(_decode, read_records(file))


class Trace:
    """Writes the file of a replay on so many workers; `watches` observe them. Raises `CannotJudge` if it gets too
    large.
    """

    def __init__(self, file: Path, workers: int) -> None:
        self.watches = [TracingWatch() for _ in range(workers)]
        self._name = file.name
        self._writer = RecordWriter(file.parent, Budget(TRACE_BYTES_MAX))

    def closed(self, epoch: int, replies: Iterable[ReplyRecord], ended: EpochTransactions) -> None:
        """The epoch is over on all workers, and has given these replies."""
        committed = {reply.tid: reply.phase for reply in replies if reply.error is None}
        answers = [_answer(reply, ended) for reply in replies]
        writes = list[Write]()
        for watch in self.watches:
            # What a transaction has tried and not committed stands among the writes of its phase.
            writes += [each for each in watch.writes if committed.get(each.tid) == each.phase]
            watch.writes = []
        self._writer.append(self._name, _encode(TracedEpoch(epoch, answers, writes)))

    def close(self) -> None:
        """Writes what waits."""
        self._writer.__exit__(None, None, None)


def _answer(reply: ReplyRecord, ended: EpochTransactions) -> Answer:
    called = ended.called(reply.tid)
    function = "" if called is None else f"{called[0]}.{called[2]}"
    return Answer(reply.phase, reply.tid, reply.sequence, digest_of(encode_reply(reply)), function)


def digest_of(data: bytes | None) -> bytes:
    """Of a value; of nothing it is empty."""
    return b"" if data is None else blake2b(data, digest_size=_DIGEST_BYTES).digest()


class TracingWatch(EndedTransactions):
    """Observes what the transactions of an epoch write on one worker."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Write] = []
        self._roots: dict[int, RootTransaction] = {}

    def sequenced(self, executor: Executor) -> None:
        """As `Watch.sequenced`."""
        self._roots = executor.roots

    def committed(
        self, epoch: int, slots: Mapping[int, Slot], locks: LockRounds | None, local: LocalPhase | None
    ) -> None:
        """As `Watch.committed`."""
        for index, slot in slots.items():
            later = set() if locks is None else set(locks.written(index))
            later |= set() if local is None else set(local.written(index))
            for table, key, value, footprint in _free_of_locks(slot, later):
                self._wrote(index, table, key, 1, footprint.tid, value, _ran_on(footprint, table, key))
            if locks is not None:
                for tid, outcome in locks.outcomes(index).items():
                    for (table, key), value in outcome.writes.items():
                        self._wrote(index, table, key, 2, tid, value, _ran_on(slot.footprints.get(tid), table, key))
            if local is not None:
                self._local(epoch, index, slot, local)

    def _local(self, epoch: int, index: int, slot: Slot, local: LocalPhase) -> None:
        roots = [root for root in local.roots if root.slot == index]
        for table, key in local.written(index):
            value = slot.state.table(table).reader(epoch)(key)
            # Which of them wrote it last is not kept. Most write to their own entity alone.
            own = [root for root in roots if _is_of(root.key, key)]
            for root in own or roots:
                self._wrote(index, table, key, 3, root.tid, value, [])

    def _wrote(
        self, slot: int, table: str, key: Any, phase: int, tid: int, value: bytes | None, functions: list[str]
    ) -> None:
        if holds_events(table):
            return
        root = self._roots.get(tid)
        if not functions and root is not None and root.function is not None:
            functions = [f"{root.function.operator}.{root.function.name}"]
        self.writes.append(Write((slot, table, shown(key)), phase, tid, digest_of(value), functions))


def _free_of_locks(slot: Slot, later: Container[tuple[str, Any]]) -> Iterator[tuple[str, Any, bytes | None, Footprint]]:
    """(table, key, value, footprint) of what transactions wrote in the execution step; later phases wrote `later`."""
    for table, cells in slot.cells_by_operator():
        for cell in cells:
            if cell.written:
                yield table, cell.key, cell.final_value(), cell.footprint
    for row in slot.incremented:
        # What it has added shows in what all of them leave, unless a later phase has written over that.
        value = None if (row.table, row.key) in later else slot.state.table(row.table).read(NEWEST, row.key)
        yield row.table, row.key, value, row.footprint
    for footprint in slot.footprints.values():
        for access in footprint.accesses or ():
            for key, value in access.writes.items():
                yield access.operator, key, value, footprint


def _ran_on(footprint: Footprint | None, table: str, key: Any) -> list[str]:
    """The functions of a transaction that ran on the entity to which an entry belongs."""
    owner = owner_of(table)
    ran = () if footprint is None else footprint.invocations
    found = {f"{owner}.{each._spec.name}" for each in ran if each._spec.operator == owner and _is_of(each._key, key)}
    return sorted(found)


def _is_of(entity: Any, key: Any) -> bool:
    """Whether an entry of this key is the entity's value, or one of its rows."""
    if key == entity:
        return True
    parts = entity if isinstance(entity, tuple) else (entity,)
    return isinstance(key, tuple) and key[: len(parts)] == parts
