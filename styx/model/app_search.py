"""Look-ups in app-wide indexes: `ctx.find`. One synchronous call, of the entity that keeps the value's entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.model.app_index import OWNERS, app_index
from styx.model.rows import check_ends, check_table
from styx.model.waiting import FIND, suspend
from styx.relational.query import all_conditions

if TYPE_CHECKING:
    from styx.model.context import Context


async def find(context: Context, table: Any, index: Any, where: tuple[Any, ...], given: dict[str, Any]) -> list[Any]:
    """The coroutine of `Context.find`. `given`: a value for each column, `first` and `last`."""
    first, last = given.pop("first", 0), given.pop("last", 0)
    check_table(context, table, getattr(table, "operator", ""))
    try:
        found = app_index(table, index)
        check_ends(first, last)
        key = found.entity_of(found.declared.asked(all_conditions(where, given) if where else given))
    except Exception as error:  # noqa: BLE001 - a value's own code can run here
        raise context._doomed(error) from None
    request = context._sync_call(found.operator, OWNERS, key, (first, last))
    data = await suspend(request)
    return [found.owner(tuple(each)) for each in request.call.function.decode_result(data)]


find.__qualname__ = FIND
