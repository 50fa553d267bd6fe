"""The rows of views of entities and partitions, made anew of the rows of their tables when a version of the app begins.

So a view that is new or has changed is right from the beginning, whatever `migrate=` made of the rows, and so is one of
a version that comes back. Pure, but for the app's own `where=`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from styx.errors import EngineFailed
from styx.model.app import App
from styx.model.table_names import entry_name, holds_view
from styx.relational.table import Table
from styx.relational.view import View
from styx.relational.view_totals import ViewTotals

Tables = Mapping[str, Mapping[Any, bytes]]


class NotCounted(EngineFailed):
    """A row cannot be counted, although the check before has passed it."""


def rebuilt_views(app: App, tables: Tables, n_slots: int) -> dict[str, dict[Any, bytes | None]]:
    """What is to be written to a slot's views, by table, so that they are those of its tables; nothing that is there
    already. Raises `NotCounted` naming the row.
    """
    writes: dict[str, dict[Any, bytes | None]] = {}
    for table in app.tables.values():
        for view in table.views:
            if view.scope == "app":
                continue
            totals = totals_of(view, tables, n_slots)
            wanted = {view.table: totals.rows()}
            wanted |= {ranking.table: totals.entries(at) for at, ranking in enumerate(view.rankings)}
            for kept, rows in wanted.items():
                writes[kept.full_name] = _changes(kept, rows, tables.get(kept.full_name, {}))
    return {name: changes for name, changes in writes.items() if changes}


def views_gone(app: App, tables: Tables) -> frozenset[str]:
    """The tables of views that the app does not have."""
    return frozenset(name for name in tables if holds_view(name) and app.table(name) is None)


def totals_of(view: View, tables: Tables, n_slots: int) -> ViewTotals:
    """What the rows that a slot has give to a view."""
    source, totals = view.source, ViewTotals(view)
    decode, entity, partition_of = source.row_type.decode, source.entity_parts, source.partition_of
    for key, data in tables.get(source.full_name, {}).items():
        try:
            share = view.share(decode(data))
            place = key[:entity] if view.scope == "entity" else (partition_of(key[:entity], n_slots),)
        except Exception as error:  # noqa: BLE001 - the app's own code can raise anything
            raise NotCounted(f"{entry_name(source.full_name, key)}: {view.named}: {error}") from None
        if share is not None:
            totals.add(place + share.group, share)
    return totals


def _changes(table: Table, wanted: Mapping[Any, bytes], stored: Mapping[Any, bytes]) -> dict[Any, bytes | None]:
    changes: dict[Any, bytes | None] = {key: None for key in stored if key not in wanted}
    changes |= {key: data for key, data in wanted.items() if not _is(table, stored.get(key), data)}
    return changes


def _is(table: Table, data: bytes | None, wanted: bytes) -> bool:
    """Whether stored bytes are that row: of sums, the digits behind the last one other than 0 do not count."""
    decode = table.row_type.decode
    try:
        return data == wanted or (data is not None and bool(decode(data) == decode(wanted)))
    except Exception:  # noqa: BLE001 - another version may have stored anything
        return False
