"""Expiry: the end of a life, when its entry of an agenda is delivered.

The value or the row is deleted as a function of the app would delete it: with its indexes, views and references. If
they refuse that, it stays, and its entry with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from styx.model.agenda import AT_ONCE, AgendaEntry
from styx.model.lifetime import Life, begin_life
from styx.model.row_statements import RowStatements
from styx.model.row_store import RowStore
from styx.model.table_names import row_table
from styx.relational.table import Table

if TYPE_CHECKING:
    from styx.model.context import Context

EXPIRED: Final = "expired"
BEGUN: Final = "begun"
LIVES_ON: Final = "lives on"


def expire(context: Context, entry: AgendaEntry, last: str, life: Life) -> str:
    """Ends the life of a value or a row of the context's entity; or begins it, for what was there before it was to end.

    The app may say of it no longer that it lives for a time only: then it lives on.
    """
    table = context._env.app.tables.get(row_table(context.operator, life.table)) if life.table else None
    if not (table is not None and table.fades if life.table else context._spec.ttl_us):
        return LIVES_ON
    if entry.given_us == AT_ONCE:
        begin_life(context, last, life)
        return BEGUN
    if table is None:
        context.delete()
    else:
        _delete_row(context, table, life)
    return EXPIRED


def _delete_row(context: Context, table: Table, life: Life) -> None:
    store = RowStore(context, context.operator, context.key)
    try:
        RowStatements(store).delete(table, store.entity + tuple(life.row))
    except Exception as error:  # noqa: BLE001 - it dooms the transaction, whatever it is
        raise context._doomed(error) from None
