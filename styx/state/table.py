"""A table: the committed entities of one operator on one slot, and their changes since the last snapshot.

Values are bytes. Every read and every write of committed state goes through a table. A read names the epoch whose end
it means. A commit reaches the entities and the next snapshot alike. Paper sections 4 (partitions) and 7.1 (incremental
snapshots).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from styx.relational.index_range import TableIndex
from styx.state.sorted_index import SortedIndex

Entries = dict[Any, bytes]
"""Encoded states by key."""
Changes = dict[Any, bytes | None]
"""Encoded states by key; None: deleted."""

Reader = Callable[[Any], bytes | None]
"""Gives the encoded state of a key, None if there is none. Made once for an epoch: a read costs a look-up alone."""

Told = Callable[[Any, bytes | None], None]
"""Is told of each write: the key, and the new state."""

NEWEST: Final = 4_611_686_018_427_387_903
"""The epoch of a read that means whatever is committed by then."""


class Table:
    """`epoch` is the last one with a commit here; what was loaded has the snapshot's. `told`, if there is one, is told
    of each write behind it.

    One version is kept: a read of an epoch before the last commit is an `AssertionError`.
    """

    __slots__ = ("_changes", "_entries", "_indexes", "epoch", "told")

    def __init__(self, entries: Entries, epoch: int) -> None:
        """The dictionary is the table's from here on."""
        self.epoch = epoch
        self._entries = entries
        self._changes: Changes = {}
        self._indexes: dict[TableIndex, SortedIndex] = {}
        self.told: Told | None = None

    def __len__(self) -> int:
        """How many entities have a state."""
        return len(self._entries)

    def reader(self, epoch: int) -> Reader:
        """Reads single states at the end of `epoch`, as long as nothing behind it is committed."""
        assert self.epoch <= epoch, "a read of an epoch that later commits have changed"
        return self._entries.get

    def read(self, epoch: int, key: Any) -> bytes | None:
        """Reads one state at the end of `epoch`, None if there is none."""
        assert self.epoch <= epoch, "a read of an epoch that later commits have changed"
        return self._entries.get(key)

    def at(self, epoch: int) -> Mapping[Any, bytes]:
        """All states at the end of `epoch`, to be read only, as long as nothing behind it is committed."""
        assert self.epoch <= epoch, "a read of an epoch that later commits have changed"
        return MappingProxyType(self._entries)

    # Indexes of a table of rows. They are made when they are asked for, kept up by commits, and in no snapshot. ------

    def index(self, epoch: int, index: TableIndex) -> SortedIndex | None:
        """The index of the rows at the end of `epoch`, as `at`; None if it is not made yet."""
        assert self.epoch <= epoch, "a read of an epoch that later commits have changed"
        return self._indexes.get(index)

    def make_index(self, index: TableIndex, n_slots: int) -> SortedIndex:
        """Makes an index of all rows."""
        made = self._indexes[index] = SortedIndex(index, n_slots, self._entries.items())
        return made

    def forget_indexes(self) -> None:
        """Drops all indexes: another version of the app has others."""
        self._indexes = {}

    @property
    def indexes_made(self) -> int:
        """How many indexes there are; each has all rows."""
        return len(self._indexes)

    def check_indexes(self, n_slots: int) -> None:
        """Holds each index against the rows; for tests."""
        for index, made in self._indexes.items():
            anew = SortedIndex(index, n_slots, self._entries.items())
            assert made.same_as(anew), f"index {index.name!r} of {index.table!r} is not that of its rows"

    def _move(self, key: Any, value: bytes | None) -> None:
        before = self._entries.get(key)
        for made in self._indexes.values():
            made.move(key, before, value)

    # The only writes. An epoch may have any number of them, until the next one has committed.

    def write(self, epoch: int, key: Any, value: bytes | None) -> None:
        """Commits one state."""
        assert self.epoch <= epoch, "a commit to an epoch behind the last one"
        self.epoch = epoch
        if self._indexes:
            self._move(key, value)
        self._changes[key] = value
        if value is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = value
        if self.told is not None:
            self.told(key, value)

    def commit(self, epoch: int, writes: Mapping[Any, bytes | None]) -> None:
        """Commits many states at once."""
        assert self.epoch <= epoch, "a commit to an epoch behind the last one"
        self.epoch = epoch
        if self._indexes:
            for key, value in writes.items():
                self._move(key, value)
        self._changes.update(writes)
        entries: Changes = self._entries  # type: ignore[assignment]
        entries.update(writes)
        if not all(writes.values()):  # quicker than to look for None; an encoded state has bytes
            for key, value in writes.items():
                if value is None:
                    del entries[key]
        if self.told is not None:
            for key, value in writes.items():
                self.told(key, value)

    def replaced(self, writes: Changes) -> Table:
        """A table with these changes on top of its own states, which stay as they are."""
        return Table(without_deleted({**self._entries, **writes}), self.epoch)

    # Snapshots ---------------------------------------------------------------------------------------------

    def take_changes(self) -> Changes:
        """The changes since the last time; they belong to the caller."""
        taken, self._changes = self._changes, {}
        return taken

    def give_back(self, changes: Changes) -> None:
        """Changes that were taken and are in no snapshot: older than those since."""
        self._changes = {**changes, **self._changes}

    def copied(self) -> Changes:
        """All states, as changes of an empty table."""
        return dict(self._entries)


def without_deleted(changes: Changes) -> Entries:
    """The entries that all changes since the beginning, merged, describe; it is the same dictionary."""
    deleted: Iterable[Any] = [key for key, value in changes.items() if value is None]
    for key in deleted:
        del changes[key]
    return changes  # type: ignore[return-value]
