"""How a view's groups are written and read: what rows give is added to them, and reading one looks up its ends.

Writing reads nothing, so that those who count in one group are not in conflict. It never asks what a row is: that
decides `styx.relational.view`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from styx.model.row_store import RowStore
from styx.relational.index_range import RowKey
from styx.relational.view import Share, View


def add_share(store: RowStore, view: View, place: RowKey, group: RowKey, share: Share) -> None:
    """Adds to a group and to its rankings. `place` begins the keys of all groups, `group` is the rest of this one's.
    One operation each.
    """
    if any(share.values):
        store.add(view.table, place + group, view.increment(share))
    for at, part, by in share.ranked:
        ranking = view.rankings[at]
        key = (*place, *group, part)
        store.add(ranking.table, key, ranking.increment(key, by))


def ends_of(store: RowStore, view: View, place: RowKey, group: RowKey) -> list[Any]:
    """The parts of the least and greatest values of a group, in the order of `View.ends`, None where no row has one.
    Two operations each, and two for each entry that is there for fewer rows than one amid the transaction.
    """
    found: list[Any] = []
    for _, at, greatest in view.ends:
        ranking = view.rankings[at]
        wanted = ranking.end(place, group, greatest)
        entries = store.scan(wanted)
        while entries and ranking.rows_of(entries[0][1]) < 1:
            wanted = ranking.beyond(wanted, entries[0][0][-1])
            entries = store.scan(wanted)
        found.append(entries[0][0][-1] if entries else None)
    return found


def stored_ends(view: View, tables: Mapping[str, Mapping[RowKey, bytes]]) -> Callable[[RowKey], list[Any]]:
    """What gives the ends of the group with this row's key, as `ends_of`, of whole tables."""
    parts: list[dict[RowKey, list[Any]]] = []
    for ranking in view.rankings:
        found: dict[RowKey, list[Any]] = {}
        for key in tables.get(ranking.table.full_name, ()):
            found.setdefault(key[:-1], []).append(key[-1])
        parts.append(found)

    def ends(key: RowKey) -> list[Any]:
        groups = [(parts[at].get(key, ()), greatest) for _, at, greatest in view.ends]
        return [max(group, default=None) if greatest else min(group, default=None) for group, greatest in groups]

    return ends


def with_ends(view: View, row: Any, ends: list[Any]) -> Any:
    """The row of a group, which gets the ends of its rankings, given as parts."""
    for (name, at, _), part in zip(view.ends, ends, strict=True):
        setattr(row, name, None if part is None else view.rankings[at].value(part))
    return row


def group_read(store: RowStore, view: View, key: RowKey, row: Any) -> Any:
    """The row of a group, decoded, as a function reads it."""
    if not view.rankings:
        return row
    parts = view.table.entity_parts
    return with_ends(view, row, ends_of(store, view, key[:parts], key[parts:]))


def no_group(view: View, group: RowKey) -> Any:
    """The row as which a group without rows is read; raises `BadQuery` if there can be no such group."""
    view.check_group(group)
    return view.nothing(group)
