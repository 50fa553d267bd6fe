"""An entity's sequences: named counters whose numbers have no gaps, `await ctx.sequence("invoices").next()`.

A sequence is ordinary state: an entry of the entity's slot, in a table of its own under a name that no operator can
have. So visibility, conflicts, commits, snapshots, moves of slots and backups treat it as they treat an entity's state,
and a transaction that aborts gives its numbers back. `get`, `put` and `delete` of the entity do not reach it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.errors import UnsupportedValue
from styx.model.limits import NAME_CHARS_MAX
from styx.model.partitioning import Key
from styx.model.waiting import DONE, last_number, next_number
from styx.native.interpreted import native
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.cell import Cell
    from styx.model.context import Context

NUMBER_MAX: Final = 2**63 - 1
"""The last number of every sequence."""
SEQUENCES_SUFFIX: Final = "/<sequences>"
"""Follows the operator's name in the name of the table that holds its entities' sequences."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(int).decode


@native(unchecked=True)
class EntitySequence:
    """One sequence of the entity that a function runs on; valid until the function ends."""

    __slots__ = ("_context", "_name")

    def __init__(self, context: Context, name: Any) -> None:
        self._context: Context = context
        self._name: Any = name
        if context._left < 0:
            context._refuse()
        if type(name) is not str or not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
            raise self._refused(
                f"a sequence's name is a text of 1 to {NAME_CHARS_MAX} printable characters, such as "
                f'ctx.sequence("invoices"): got {shown(name)} on {context._entity()}'
            )

    def __repr__(self) -> str:
        return f"sequence {self._name!r} of {self._context._entity()}"

    def next(self) -> Coroutine[Any, Any, int]:
        """The next number, 1 at first: one more than the last one that a committed transaction took.

        The `await` takes the number. An aborted transaction takes none, so there are no gaps. Transactions that take
        numbers of one sequence conflict, as transactions that write one entity do. Counts as one operation.
        """
        return self._context._begin(next_number(self))

    def last(self) -> Coroutine[Any, Any, int]:
        """The number that was taken last, 0 before the first one. Counts as one operation."""
        return self._context._begin(last_number(self))

    def restart(self, after: int = 0) -> Awaitable[None]:
        """Makes `after` + 1 the next number; `after` is from 0 to 2**63 - 1. With 0 nothing is left of the sequence.

        For numbers that continue those of another system, or for an entity that is deleted for good. Numbers that were
        given before are given again. As with `put`, it has happened when this returns. Raises `UnsupportedValue`.
        """
        self._may_write("restart")
        if type(after) is not int or not 0 <= after <= NUMBER_MAX:
            raise self._refused(f"{self} restarts after a whole number from 0 to {NUMBER_MAX}: got {shown(after)}")
        self._cell().write(self._context._chain, encode_number(after))
        return DONE

    def _take(self) -> int:
        """Takes the next number."""
        self._may_write("next")
        cell, chain = self._cell(), self._context._chain
        number = decode_number(cell.read(chain)) + 1
        if number > NUMBER_MAX:
            raise self._refused(f"{self} has given its last number")
        cell.write(chain, encode_number(number))
        return number

    def _taken(self) -> int:
        """Reads the number that was taken last."""
        return decode_number(self._cell().read(self._context._chain))

    def _cell(self) -> Cell:
        """The sequence as the transaction sees it; counts one operation."""
        context = self._context
        left = context._left
        if left <= 0:
            context._refuse()
        context._left = left - 1
        return context._cell.sibling(context._env, table_of(context._spec.operator), entry_of(context._key, self._name))

    def _may_write(self, method: str) -> None:
        context = self._context
        if context._spec.read_only:
            raise context._violation(f"sequence(…).{method}")

    def _refused(self, text: str) -> BaseException:
        return self._context._doomed(UnsupportedValue(text))


# Values and where they are kept ----------------------------------------------------------------------------


def encode_number(number: int) -> bytes | None:
    """A sequence's stored value; None, no entry, before the first number."""
    return _encode(number) if number else None


def decode_number(data: bytes | None) -> int:
    """The number that was taken last."""
    return 0 if data is None else _decode(data)


def table_of(operator: str) -> str:
    """The name of the table that holds the sequences of an operator's entities."""
    return operator + SEQUENCES_SUFFIX


def entry_of(key: Key, name: str) -> tuple[str | int, ...]:
    """The key in that table of one entity's sequence: the entity's key, flat, and the name."""
    return (*key, name) if type(key) is tuple else (key, name)  # type: ignore[return-value]  # narrowed to a part
