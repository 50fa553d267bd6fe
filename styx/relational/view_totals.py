"""What all rows of a table give to a view, added up at once: the rows and entries that the view is to have.

By this a view is made anew when a version begins, and held against its rows in tests. It never looks at what is stored
of the view.
"""

from __future__ import annotations

from styx.relational.index_range import RowKey
from styx.relational.view import Share, View, added


class ViewTotals:
    """The totals of one view, of the shares that are added."""

    __slots__ = ("_entries", "_groups", "_view")

    def __init__(self, view: View) -> None:
        self._view = view
        self._groups: dict[RowKey, Share] = {}
        self._entries: list[dict[RowKey, int]] = [{} for _ in view.rankings]

    def add(self, key: RowKey, share: Share) -> None:
        """Adds what one row gives; `key` is that of its group's row."""
        before = self._groups.get(key)
        values = share.values if before is None else tuple(map(added, before.values, share.values))
        self._groups[key] = Share(share.group, values)
        for at, part, by in share.ranked:
            entries = self._entries[at]
            entries[*key, part] = entries.get((*key, part), 0) + by

    def rows(self) -> dict[RowKey, bytes]:
        """The rows of the view by their keys, encoded."""
        encode = self._view.table.row_type.encode
        return {key: encode(self._view.group_row(share)) for key, share in self._groups.items()}

    def entries(self, at: int) -> dict[RowKey, bytes]:
        """The entries of the ranking of this number, by their keys, encoded."""
        ranking = self._view.rankings[at]
        return {key: ranking.entry(key, rows) for key, rows in self._entries[at].items()}
