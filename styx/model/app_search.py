"""Look-ups in app-wide indexes: `ctx.find`. One synchronous call, of the entity that keeps the value's entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.errors import BadQuery
from styx.model.app_index import OWNERS, PAGE, AppIndex, app_index, sent
from styx.model.row_page import Page
from styx.model.rows import check_ends, check_size, check_table
from styx.model.waiting import FIND, suspend
from styx.relational.query import all_conditions

if TYPE_CHECKING:
    from styx.model.context import Context


async def find(context: Context, table: Any, index: Any, where: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """The coroutine of `Context.find`. `given`: conditions by column, `first` and `last`, or `size` and `after`."""
    first, last = given.pop("first", 0), given.pop("last", 0)
    size, after = given.pop("size", None), given.pop("after", None)
    check_table(context, table, getattr(table, "operator", ""))
    try:
        found = app_index(table, index)
        check_ends(first, last)
        _check_page(found, size, after, first or last)
        look = found.declared.asked(all_conditions(where, given) if where else given)
        key = found.entity_of(look.value)
    except Exception as error:  # noqa: BLE001 - a value's own code can run here
        raise context._doomed(error) from None
    if size is not None:
        request = context._sync_call(found.operator, PAGE, key, (size, after, sent(look)))
    elif look.order or look.compared is not None:
        request = context._sync_call(found.operator, OWNERS, key, (first, last, sent(look)))
    else:
        request = context._sync_call(found.operator, OWNERS, key, (first, last))
    data = await suspend(request)
    result = request.call.function.decode_result(data)
    if size is None:
        return [found.owner(tuple(each)) for each in result]
    rows, following = result
    return Page([found.owner(tuple(each)) for each in rows], following)


def _check_page(index: AppIndex, size: Any, after: Any, ends: int) -> None:
    if size is None:
        if after is not None:
            raise BadQuery("after= is the cursor of a page, and size= says how many rows a page has: give both")
        return
    check_size(size)
    if ends:
        raise BadQuery("a look-up gives a page, with size=, or its first or last rows, with first= or last=")
    if after is not None:
        index.check_cursor(after)


find.__qualname__ = FIND
