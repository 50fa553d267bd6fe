"""A table: the committed entities of one operator on one slot, and their changes since the last snapshot.

Values are bytes. Every read and every write of committed state goes through a table. A read names the epoch whose end
it means. A commit reaches the entities and the next snapshot alike. Paper sections 4 (partitions) and 7.1 (incremental
snapshots).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from styx.relational.index_range import Group, RowKey, TableIndex
from styx.state.entity_keys import EntityKeys
from styx.state.key_order import KeyOrder
from styx.state.sorted_index import Entry, SortedIndex
from styx.state.versions import Images, TableVersions

Entries = dict[Any, bytes]
"""Encoded states by key."""
Changes = dict[Any, bytes | None]
"""Encoded states by key; None: deleted."""

Reader = Callable[[Any], bytes | None]
"""Gives the encoded state of a key, None if there is none. Made once for an epoch: a read costs a look-up alone."""

Told = Callable[[Any, bytes | None], None]
"""Is told of each write: the key, and the new state."""

MANY_ROWS: Final = 10_000
"""Rows of an entity from which its indexes are made while it is loaded, or when it has come to have so many. Those of a
smaller entity are made when a query first asks for them.
"""
_BLOCK_ROWS: Final = 4_096

NEWEST: Final = 4_611_686_018_427_387_903
"""The epoch of a read that means whatever is committed by then."""


class Table:
    """`epoch` is the last one with a commit here; what was loaded has the snapshot's. `told`, if there is one, is told
    of each write behind it.

    A read of an epoch before the last commit is an `AssertionError`, but by `value_at` and `images_behind`, as far as
    there are `versions`.
    """

    __slots__ = (
        "_changes",
        "_declared",
        "_entries",
        "_indexes",
        "_keys",
        "_moves",
        "_n_slots",
        "_order",
        "epoch",
        "told",
        "versions",
    )

    def __init__(self, entries: Entries, epoch: int) -> None:
        """The dictionary is the table's from here on."""
        self.epoch = epoch
        self._entries = entries
        self._changes: Changes = {}
        self._declared: tuple[TableIndex, ...] = ()
        self._n_slots = 0
        self._keys: EntityKeys | None = None
        self._indexes: dict[TableIndex, SortedIndex] = {}
        self._order: KeyOrder | None = None
        self._moves = False
        self.told: Told | None = None
        self.versions: TableVersions | None = None

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

    # Reads of earlier epochs, as far as versions are kept ---------------------------------------------------------

    def value_at(self, epoch: int, key: Any) -> bytes | None:
        """One state at the end of `epoch`, which may be an earlier one than that of the last commit."""
        if self.epoch <= epoch:
            return self._entries.get(key)
        versions = self.versions
        assert versions is not None, "a read of an earlier epoch, and no versions are kept"
        return versions.value_at(epoch, key, self._entries)

    def images_behind(self, epoch: int) -> list[Images]:
        """What commits after `epoch` have overwritten, the newest ones first: laid over the table, one behind the
        other, they make the state at the end of `epoch`.
        """
        if self.epoch <= epoch:
            return []
        versions = self.versions
        assert versions is not None, "a read of an earlier epoch, and no versions are kept"
        return versions.behind(epoch)

    def order(self, keys: int) -> KeyOrder | None:
        """All keys that have a state now, in order; None as long as it is not made. Each call makes it for about so
        many keys more. It is kept up by commits, until nobody reads it for long.
        """
        order = self._order
        if order is None:
            order = self._order = KeyOrder(self._entries)
            self._moves = True
        return order if order.ready or order.go_on(keys) else None

    # Indexes of a table of rows. They are kept up by commits, and are in no snapshot. ----------------------------

    def declare(self, indexes: tuple[TableIndex, ...], n_slots: int) -> None:
        """The indexes that queries may ask for, the primary key first; those of other versions of the app are dropped.

        Made at once are those of an empty table. `fill` makes those of a loaded one, as far as they are made before a
        query asks for them.
        """
        if indexes is self._declared and n_slots == self._n_slots:
            return
        self._declared, self._n_slots = indexes, n_slots
        self._keys, self._indexes = None, {}
        self._note_moves()
        if indexes and not self._entries:
            for _ in self.fill():
                pass

    def fill(self) -> Iterator[None]:
        """Groups the primary keys, and makes the indexes over all entities, and those of the entities with many rows.
        Other threads can run at each step. An index with a row that cannot be read is left to the queries, which say
        so.
        """
        if not self._declared:
            return
        keys = EntityKeys(self._declared[0].of_entities)
        wide: dict[TableIndex, SortedIndex] = {}
        for index in self._declared:
            if not index.of_entities:
                made = SortedIndex(index, self._n_slots)
                groups: dict[Group, list[Entry]] = {}
                rows_left = iter(self._entries.items())
                try:
                    while rows := list(islice(rows_left, _BLOCK_ROWS)):
                        made.gather(rows, groups)
                        yield
                except Exception:  # noqa: BLE001 - a row type's own code can run here
                    continue
                made.put(groups)
                wide[index] = made
        keys_left = iter(self._entries)
        while block := list(islice(keys_left, _BLOCK_ROWS)):
            keys.load(block)
            yield
        self._keys, self._indexes = keys, wide
        self._moves = True
        for entity in keys.large(MANY_ROWS):
            self._take_in(entity)
            yield

    def index(self, epoch: int, index: TableIndex, group: Group) -> SortedIndex | EntityKeys | None:
        """An index that has all rows of a group, at the end of `epoch`, as `at`; None if it is not made so far."""
        assert self.epoch <= epoch, "a read of an epoch that later commits have changed"
        if index.number == 0 and index.of_entities:
            return self._keys
        made = self._indexes.get(index)
        return made if made is not None and made.has(group) else None

    def make_index(self, index: TableIndex, group: Group, n_slots: int) -> SortedIndex | EntityKeys:
        """Makes an index as far as `index` needs it; raises what decoding a row raises."""
        parts = index.of_entities
        made = self._indexes.get(index)
        if not parts:
            made = SortedIndex(index, n_slots)
            made.take(self._entries.items())
            self._indexes[index] = made
            self._moves = True
            return made
        if self._keys is None:
            self._keys = EntityKeys(parts)
            self._keys.load(self._entries)
            self._moves = True
        if index.number == 0:
            return self._keys
        if made is None:
            made = self._indexes[index] = SortedIndex(index, n_slots)
        entity = group[:parts]
        if self._keys.length(entity):  # queries of what is not there leave nothing
            made.take(self._rows_of(self._keys, entity), entity)
        return made

    @property
    def indexes_made(self) -> int:
        """How many indexes there are. One inside entities may have few of them."""
        made = [index for index in self._indexes.values() if index.entities is None or index.entities]
        return len(made) + (self._keys is not None)

    def check_indexes(self, n_slots: int) -> None:
        """Holds each index and the order against the rows; for tests."""
        order = self._order
        if order is not None and order.ready:
            assert list(order.walk()) == sorted(self._entries), "the order of keys is not that of its entries"
        keys = self._keys
        if keys is not None:
            anew = EntityKeys(keys.parts)
            anew.load(self._entries)
            assert keys.same_as(anew), "the primary key's index is not that of its rows"
        for index, made in self._indexes.items():
            again = SortedIndex(index, n_slots)
            if made.entities is None or keys is None:
                again.take(self._entries.items())
            else:
                for entity in made.entities:
                    again.take(self._rows_of(keys, entity), entity)
            assert made.same_as(again), f"index {index.name!r} of {index.table!r} is not that of its rows"

    def _rows_of(self, keys: EntityKeys, entity: Group) -> list[tuple[RowKey, bytes]]:
        entries = self._entries
        return [(key, entries[key]) for key in keys.of(entity)]

    def _take_in(self, entity: Group) -> None:
        """Makes the declared indexes of an entity with many rows, before a query asks: it would wait for long."""
        for index in self._declared:
            if index.of_entities and self.index(self.epoch, index, entity) is None:
                try:
                    self.make_index(index, entity, self._n_slots)
                except Exception:  # noqa: BLE001 - as above
                    continue

    def _move(self, key: Any, value: bytes | None) -> Group | None:
        """Changes the indexes and the order before a state is written. Returns an entity that has many rows from now
        on, to be taken in once all states of the commit are written: an index is made of what is written.
        """
        before, keys = self._entries.get(key), self._keys
        for made in self._indexes.values():
            made.move(key, before, value)
        if (before is None) == (value is None):
            return None
        if self._order is not None:
            self._keep_order(self._order, key, value is not None)
        if keys is None:
            return None
        if value is not None:
            return key[: keys.parts] if keys.add(key) == MANY_ROWS + 1 else None
        entity = key[: keys.parts]
        keys.remove(key)
        if not keys.length(entity):
            for made in self._indexes.values():
                made.forget(entity)
        return None

    def _note_moves(self) -> None:
        """Notes whether a write changes anything beside its state: one look for each write."""
        self._moves = self._keys is not None or bool(self._indexes) or self._order is not None

    def _keep_order(self, order: KeyOrder, key: Any, comes: bool) -> None:
        if order.unread:
            self._order = None
            self._note_moves()
        elif comes:
            order.add(key)
        else:
            order.remove(key)

    # The only writes. An epoch may have any number of them, until the next one has committed.

    def write(self, epoch: int, key: Any, value: bytes | None) -> None:
        """Commits one state."""
        assert self.epoch <= epoch, "a commit to an epoch behind the last one"
        self.epoch = epoch
        versions = self.versions
        if versions is not None:
            versions.keep(epoch, key, self._entries.get(key))
        grown = self._move(key, value) if self._moves else None
        self._changes[key] = value
        if value is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = value
        if grown is not None:
            self._take_in(grown)
        if self.told is not None:
            self.told(key, value)

    def commit(self, epoch: int, writes: Mapping[Any, bytes | None]) -> None:
        """Commits many states at once."""
        assert self.epoch <= epoch, "a commit to an epoch behind the last one"
        self.epoch = epoch
        versions = self.versions
        if versions is not None:
            versions.keep_all(epoch, writes, self._entries)
        grown: list[Group] = []
        if self._moves:
            for key, value in writes.items():
                entity = self._move(key, value)
                if entity is not None:
                    grown.append(entity)
        self._changes.update(writes)
        entries: Changes = self._entries  # type: ignore[assignment]
        entries.update(writes)
        if not all(writes.values()):  # quicker than to look for None; an encoded state has bytes
            for key, value in writes.items():
                if value is None:
                    del entries[key]
        for each in grown:
            self._take_in(each)
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
