"""What the externals stream says: which outside calls were begun, and how those that ended did.

One partition a slot, the slot of the transaction's root. An outcome is kept until the oldest snapshot that a recovery
may start from was taken after its transaction's end. Never runs anything. Paper section 7.5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from styx.embedded_engine.engine_log import EngineLog
from styx.log.base import Stream
from styx.sequencer.external_record import ExternalRecord, decode_external, encode_external


class ExternalLog:
    """`outcomes` are the retained ones, by key. `read` may run on another thread, before anything else is used."""

    def __init__(self, log: EngineLog, n_slots: int) -> None:
        self._appended = log
        self._log = log.log
        self._slots = range(n_slots)
        self.outcomes: dict[bytes, bytes] = {}
        self._keys: dict[int, deque[tuple[int, bytes]]] = {slot: deque() for slot in self._slots}
        self._first_of: dict[int, dict[int, int]] = {slot: {} for slot in self._slots}
        self._cuts: dict[int, dict[int, int]] = {}

    def read(self) -> None:
        """Takes what is in the log; raises `LogCorrupt`."""
        for slot in self._slots:
            first, _ = self._log.bounds(Stream.EXTERNALS, slot)
            for record in self._log.read(Stream.EXTERNALS, slot, first):
                self._remember(slot, record.offset, decode_external(record.payload))

    def append(self, slot: int, record: ExternalRecord, durable: Callable[[], None]) -> None:
        """Appends a record; `durable` is called once it is."""
        offset = self._appended.append(Stream.EXTERNALS, slot, encode_external(record))
        self._remember(slot, offset, record)
        self._appended.when_durable(durable)

    def cut(self, slot: int, epoch: int, pending: Iterable[int]) -> None:
        """A snapshot of `epoch` begins; behind it only the `pending` transactions can ask for an outcome."""
        first_of = self._first_of[slot]
        self._first_of[slot] = first_of = {tid: first_of[tid] for tid in pending if tid in first_of}
        _, end = self._log.bounds(Stream.EXTERNALS, slot)
        self._cuts.setdefault(epoch, {})[slot] = min(first_of.values(), default=end)

    def release(self, epoch: int) -> None:
        """No recovery starts before the snapshot of `epoch` any more."""
        # Unknown after a restart: then the next snapshots release it.
        for slot, offset in self._cuts.get(epoch, {}).items():
            self._log.truncate(Stream.EXTERNALS, slot, offset)
            keys = self._keys[slot]
            while keys and keys[0][0] < offset:
                self.outcomes.pop(keys.popleft()[1], None)
        self._cuts = {known: cuts for known, cuts in self._cuts.items() if known > epoch}

    def _remember(self, slot: int, offset: int, record: ExternalRecord) -> None:
        self._first_of[slot].setdefault(record.tid, offset)
        if record.outcome is not None:
            self.outcomes[record.key] = record.outcome
            self._keys[slot].append((offset, record.key))
