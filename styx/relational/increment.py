"""An increment: what one statement adds to columns of a row, whatever values the row has when its turn comes.

Increments of one row commute for everyone who does not look at it: they are added up when the transaction commits, in
the order of the serial execution. So none of them may fail, and none runs code of the app: `styx.relational.addable`
says which columns allow that.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal
from typing import Any, Final

from styx.relational.row_type import RowType

DECIMAL_DIGITS_MAX: Final = 100
"""Digits that a sum of Decimals keeps; what is longer is rounded."""
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1
"""The numbers that a column of ints can hold; a sum beyond them stays at the nearest one."""
_SUMS: Final = Context(prec=DECIMAL_DIGITS_MAX, traps=[])


class Increment:
    """`deltas` are numbers by column, each of the column's own type: int, Decimal or float.

    `zero`: the encoded row that the deltas are added to if the row is missing; None if a missing row is the statement's
    error. With it, the row is removed as soon as its column `count`, an int, is 0, and so are all columns that the
    deltas name. All increments of a row have the same `zero` and `count`, as rows of a view have.
    """

    __slots__ = ("count", "deltas", "row_type", "zero")

    def __init__(
        self, row_type: RowType, deltas: dict[str, Any], zero: bytes | None = None, count: str | None = None
    ) -> None:
        self.row_type = row_type
        self.deltas = deltas
        self.zero = zero
        self.count = count

    def decoded(self, data: bytes | None) -> Any:
        """A fresh copy of the row to add to."""
        before = self.zero if data is None else data
        assert before is not None, "an increment of a row that is missing"
        row_type = self.row_type
        try:
            unpack = row_type.unpack
            return unpack(before)
        except Exception:  # noqa: BLE001 - the careful way reads what another version stored, or raises it again
            decode = row_type.decode
            return decode(before)

    def add_to(self, row: Any) -> None:
        """Adds the deltas to a row that nobody else has; never raises."""
        set_column = self.row_type.set_column
        for name, delta in self.deltas.items():
            if type(delta) is not int:
                set_column(row, name, _sum(getattr(row, name), delta))
            elif delta:  # the usual one of a view is none of the number of rows
                total = getattr(row, name) + delta
                set_column(row, name, total if INT_MIN <= total <= INT_MAX else min(max(total, INT_MIN), INT_MAX))

    def empties(self, row: Any) -> bool:
        """Whether nothing is left of the row that the deltas were added to."""
        if self.count is None or getattr(row, self.count) != 0:
            return False
        return not any(getattr(row, name) for name in self.deltas)


def incremented(data: bytes | None, increments: Iterable[Increment]) -> bytes | None:
    """A row's bytes with increments, in their order; None if the row is removed."""
    row: Any = None
    last: Increment | None = None
    for increment in increments:
        if row is None:
            row = increment.decoded(data)
        increment.add_to(row)
        last = increment
        if increment.empties(row):
            row = data = None
    if row is None or last is None:
        return data
    pack = last.row_type.typed.pack
    return pack(row)


def _sum(value: Any, delta: Any) -> Any:
    return _SUMS.add(value, delta) if type(delta) is Decimal else value + delta
