"""What a change of a row implies for entities elsewhere: calls that the engine makes, of engine-made functions.

A statement that changes a row of a table with consequences makes the calls that they give, as asynchronous calls of the
function that runs. So they are part of its transaction: they run when its chain has returned, in call-path order, and
an error of one ends the transaction. That order is not always the order of the writes. A function that has called
another one without waiting, and changes a row afterwards, implies its calls behind those of the other one. So what a
called function does must not depend on the order of the calls of one row: it adds and takes away, and never sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from styx.model.internal_operator import InternalOperator
from styx.relational.index_range import RowKey
from styx.relational.table import Table


class ImpliedCall(NamedTuple):
    """An asynchronous call of an internal operator's function. `params` are its arguments, as for `ctx.call_async`."""

    operator: InternalOperator
    function: str
    key: Any
    params: tuple[Any, ...]


class Consequence:
    """What the changes of one table's rows imply. It stands in `Table.consequences`; a table without any pays nothing.

    It is made with the declaration, knows no app, and decides by its arguments alone. `entries`: the table of an
    internal operator in which all that it stores is, None if it stores nothing. `derived` says what stands there, for
    whenever another version of the app begins: the entries are then made anew of the rows.
    """

    __slots__ = ()

    @property
    def entries(self) -> Table | None:
        return None

    def calls(self, key: RowKey, old: Any, new: Any) -> Iterable[ImpliedCall]:
        """The calls that a change of a row implies, in order.

        `key`: the row's key, flat: its entity's key, then its primary key. `old`: the row that the statement finds,
        decoded, None if there is none; `new`: the row as it will be stored, None if it is deleted. What is raised ends
        the transaction at the statement.
        """
        raise NotImplementedError

    def derived(self, rows: Iterable[tuple[RowKey, bytes]]) -> dict[RowKey, bytes]:
        """All entries that the rows of all slots imply; raises what decoding raises."""
        raise NotImplementedError

    def minds(self, column: str) -> bool:
        """Whether a column's value matters to the calls. Then nothing can be added to it by `rows.add`, which does not
        know the value, and implies nothing.
        """
        return True
