"""Views over all entities: a group lies on the slot of its value, and is kept by the transactions that change its rows.

The entities of a view's internal operator are the groups; each has one row. A change of a row implies a call that adds
to its group. These calls only add, so in whatever order they run the sum is the same, and transactions that count in
one group do not conflict. A read of a group is a call, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from styx.errors import BadKey, BadQuery, UnsupportedValue
from styx.model.consequence import Consequence, ImpliedCall
from styx.model.group_rows import add_share, ends_of, with_ends
from styx.model.internal_operator import INTERNAL_MARK, InternalOperator
from styx.model.row_store import RowStore
from styx.model.rows import check_table
from styx.model.waiting import GROUP, suspend
from styx.relational.index_range import RowKey
from styx.relational.view import Share, View
from styx.relational.view_totals import ViewTotals
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.context import Context
    from styx.model.partitioning import Key
    from styx.relational.table import Table

ADD: Final = "add"
READ: Final = "read"
_ALL: Final = 0
"""The entity of a view whose rows are one group."""


class AppView(Consequence):
    """What keeps a view with `scope="app"`, whose table it makes of an empty one."""

    __slots__ = ("operator", "view")

    def __init__(self, view: View) -> None:
        self.view = view
        source, columns = view.source, ",".join(column.name for column in view.groups)
        name = INTERNAL_MARK.join([source.operator, source.name, f"{view.name}({columns})"])
        kinds = tuple([column.kind.compared_as for column in view.groups if column.kind is not None])
        self.operator = InternalOperator(name, kinds if len(kinds) > 1 else kinds[0] if kinds else int)
        view.source.declare_kept(view, name, max(len(kinds), 1), False)
        self._register()

    def _register(self) -> None:
        view = self.view

        async def add(ctx: Context, values: list[Any], ranked: Sequence[Any] = ()) -> None:
            """Rows have come to this group, or left it."""
            store = RowStore(ctx, ctx.operator, ctx.key)
            share = Share(self._group_of(ctx.key), view.values_from(values), tuple(map(tuple, ranked)))
            add_share(store, view, store.entity, (), share)

        async def read(ctx: Context) -> list[Any] | None:
            """The values of the group and the parts of its ends, None if it has no rows.

            Amid a transaction a row may be taken away before the call that has added it: then fewer rows than none are
            counted, and that is no row for those who read.
            """
            store = RowStore(ctx, ctx.operator, ctx.key)
            data = store.read(view.table, store.entity)
            if data is None:
                return None
            values = view.values_of(store.decoded(view.table, store.entity, data))
            return [_sent(values), ends_of(store, view, store.entity, ())] if values[0] > 0 else None

        self.operator.register(add)
        self.operator.register(read, read_only=True)

    def calls(self, key: RowKey, old: Any, new: Any) -> Iterable[ImpliedCall]:
        """As `Consequence.calls`; raises as `View.share`, and `UnsupportedValue` for a group that can be no key."""
        calls = []
        for share in self.view.shares(old, new):
            params: tuple[Any, ...] = (_sent(share.values),)
            if share.ranked:
                params = (*params, share.ranked)
            calls.append(ImpliedCall(self.operator, ADD, self.entity_of(share.group), params))
        return calls

    def entity_of(self, group: RowKey) -> Key:
        """The entity that keeps a group; raises `UnsupportedValue`."""
        try:
            return self.operator.check_key(group if len(group) > 1 else group[0] if group else _ALL)
        except BadKey as error:
            raise UnsupportedValue(f"{self.view.named}: {shown(group)} can be no group: {error}") from None

    def minds(self, name: str) -> bool:
        """As `Consequence.minds`."""
        return self.view.minds(name)

    @property
    def entries(self) -> Table:
        """As `Consequence.entries`."""
        return self.view.table

    def derived(self, rows: Iterable[tuple[RowKey, bytes]]) -> dict[RowKey, bytes]:
        """As `Consequence.derived`."""
        return _totals(self.view, rows).rows()

    @property
    def consequences(self) -> list[Consequence]:
        """All that the table of the rows has for the view."""
        return [self, *[RankedElsewhere(self.view, at) for at in range(len(self.view.rankings))]]

    def _group_of(self, key: Key) -> RowKey:
        if not self.view.groups:
            return ()
        return key if type(key) is tuple else (key,)


class RankedElsewhere(Consequence):
    """The entries of a ranking of such a view, which the calls of the `AppView` keep as well."""

    __slots__ = ("_number", "_view")

    def __init__(self, view: View, number: int) -> None:
        self._view = view
        self._number = number

    def calls(self, key: RowKey, old: Any, new: Any) -> Iterable[ImpliedCall]:
        """As `Consequence.calls`."""
        return ()

    def minds(self, name: str) -> bool:
        """As `Consequence.minds`."""
        return self._view.minds(name)

    @property
    def entries(self) -> Table:
        """As `Consequence.entries`."""
        return self._view.rankings[self._number].table

    def derived(self, rows: Iterable[tuple[RowKey, bytes]]) -> dict[RowKey, bytes]:
        """As `Consequence.derived`."""
        return _totals(self._view, rows).entries(self._number)


def _totals(view: View, rows: Iterable[tuple[RowKey, bytes]]) -> ViewTotals:
    decode, totals = view.source.row_type.decode, ViewTotals(view)
    for _, data in rows:
        share = view.share(decode(data))
        if share is not None:
            totals.add(share.group or (_ALL,), share)
    return totals


def _sent(values: tuple[Any, ...]) -> list[Any]:
    """Values as arguments and results have them: a Decimal as its text."""
    return [str(value) if type(value) is Decimal else value for value in values]


async def group(context: Context, table: Any, group_values: tuple[Any, ...]) -> Any:
    """The coroutine of `Context.group`."""
    check_table(context, table, getattr(table, "operator", ""))
    try:
        view = table.view_rule
        if view is None or view.scope != "app":
            raise BadQuery(
                f'ctx.group is for views with scope="app", and {table.full_name} is none: read it by ctx.rows(…)'
            )
        keeper = _keeper(view)
        key = view.asked(group_values)
        entity = keeper.entity_of(key)
    except Exception as error:  # noqa: BLE001 - a value's own code can run here
        raise context._doomed(error) from None
    request = context._sync_call(keeper.operator, READ, entity, ())
    data = await suspend(request)
    found = request.call.function.decode_result(data)
    if found is None:
        return view.nothing(key)
    values, ends = found
    return with_ends(view, view.group_row(Share(key, view.values_from(values))), ends)


def _keeper(view: View) -> AppView:
    return next(each for each in view.source.consequences if isinstance(each, AppView) and each.view is view)


group.__qualname__ = GROUP
