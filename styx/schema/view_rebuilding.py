"""The rows of views of entities, made anew of the rows of their tables: when a version of the app begins.

So a view that is new or has changed is right from the beginning, whatever `migrate=` made of the rows, and so is one of
a version that comes back. Pure, but for the app's own `where=`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from styx.errors import EngineFailed
from styx.model.app import App
from styx.model.table_names import entry_name, holds_view
from styx.relational.view import Share, View, added

Tables = Mapping[str, Mapping[Any, bytes]]


class NotCounted(EngineFailed):
    """A row cannot be counted, although the check before has passed it."""


def rebuilt_views(app: App, tables: Tables) -> dict[str, dict[Any, bytes | None]]:
    """What is to be written to a slot's views, by table, so that they are those of its tables; nothing that is there
    already. Raises `NotCounted` naming the row.
    """
    writes: dict[str, dict[Any, bytes | None]] = {}
    for table in app.tables.values():
        for view in table.views:
            if view.scope != "entity":
                continue
            changes = _changes(view, groups_of(view, tables), tables.get(view.table.full_name, {}))
            if changes:
                writes[view.table.full_name] = changes
    return writes


def views_gone(app: App, tables: Tables) -> frozenset[str]:
    """The tables of views that the app does not have."""
    return frozenset(name for name in tables if holds_view(name) and app.table(name) is None)


def groups_of(view: View, tables: Tables) -> dict[Any, Any]:
    """The rows of a view by their keys, of the rows that a slot has."""
    source = view.source
    decode, entity = source.row_type.decode, source.entity_parts
    found: dict[Any, tuple[Any, ...]] = {}
    for key, data in tables.get(source.full_name, {}).items():
        try:
            share = view.share(decode(data))
        except Exception as error:  # noqa: BLE001 - the app's own code can raise anything
            raise NotCounted(f"{entry_name(source.full_name, key)}: {view.named}: {error}") from None
        if share is not None:
            group = key[:entity] + share.group
            values = found.get(group)
            found[group] = share.values if values is None else tuple(map(added, values, share.values))
    return {group: view.group_row(Share(group[entity:], values)) for group, values in found.items()}


def _changes(view: View, wanted: Mapping[Any, Any], stored: Mapping[Any, bytes]) -> dict[Any, bytes | None]:
    changes: dict[Any, bytes | None] = {key: None for key in stored if key not in wanted}
    for key, row in wanted.items():
        if not _is(view, stored.get(key), row):
            changes[key] = view.table.row_type.encode(row)
    return changes


def _is(view: View, data: bytes | None, row: Any) -> bool:
    """Whether stored bytes are that row: of sums, the digits behind the last one other than 0 do not count."""
    try:
        return data is not None and bool(view.table.row_type.decode(data) == row)
    except Exception:  # noqa: BLE001 - another version may have stored anything
        return False
