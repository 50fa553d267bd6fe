"""A cell: one entry of a slot's state as one transaction sees it, behind which each step of an epoch has its own rules.

The executor, the lock phase, phase 3 and the serial reference each have their cells. A context reads and writes through
the one that it was given, and reaches other entries of the slot through it. Paper section 5.2.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from styx.errors import BadArguments
from styx.model.access import Access
from styx.model.app import App
from styx.model.function_log import Line
from styx.native.compiled import TransactionLimits
from styx.native.interpreted import native
from styx.relational.increment import Increment, incremented
from styx.relational.index_range import TOP, Group, IndexRange, Position, RowKey, TableIndex

_YEAR_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)


@native(subclassed=True)
class Cell:
    """One entry of a slot's state as one transaction sees it: an entity's, or a sequence's. `chain` is the reader's
    synchronous chain.

    `access` performs an access to entities of the same operator on the same slot, all of which count as touched, and
    gives its result. `sibling` gives another entry of the same slot to the same transaction, whose `environment` it is.
    """

    __slots__ = ()

    def read(self, chain: bytes) -> bytes | None:
        raise NotImplementedError

    def write(self, chain: bytes, value: bytes | None) -> None:
        raise NotImplementedError

    def add(self, chain: bytes, increment: Increment) -> bool:
        """Adds to the row that `chain` sees. Returns False if it is missing and must not be, without a change.

        This is what an increment means. Who runs a transaction beside others adds without looking.
        """
        before = self.read(chain)
        if before is None and increment.zero is None:
            return False
        self.write(chain, incremented(before, (increment,)))
        return True

    def access(self, access: Access) -> Any:
        raise NotImplementedError

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        raise NotImplementedError

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        """The rows of a range of the same slot as `chain` sees them, in order of their positions."""
        raise NotImplementedError

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        """How many rows the range has, for `chain`; `wanted` asks for membership, and has no `first` or `last`."""
        raise NotImplementedError

    def has(
        self, environment: Environment, primary: TableIndex, entity: Group, position: Position, chain: bytes
    ) -> bool:
        """Whether a row is there for `chain`, whatever it holds: as many rows as the range has that is its place in the
        primary key's index `primary`.
        """
        return self.count(environment, IndexRange(primary, entity, position, (*position, TOP), True), chain) > 0

    def listed(self, table: str, wanted: Any, first: int) -> Any:
        """(up to `first` entries of the slot's table that the `KeyRange` has, in order of their keys; whether there are
        more); None as long as their order is not made, of which each call makes a piece.

        Only what reads outside the log can list: no transaction is to wait for all keys of a table.
        """
        raise BadArguments("keys are listed by reads outside the log alone")


@native(subclassed=True)
class Environment:
    """A context's transaction and deployment."""

    __slots__ = ()

    app: App
    limits: TransactionLimits
    n_slots: int
    tid: int
    timestamp_us: int

    def place(self) -> tuple[int, int]:
        """(the epoch that the transaction is in, the part of it: `FIRST_RUN`, `LOCK_PHASE` or `LOCAL_PART`)."""
        raise NotImplementedError

    def now(self) -> datetime:
        """The time at which the transaction's request entered the log, in UTC."""
        return _YEAR_1970 + timedelta(microseconds=self.timestamp_us)

    def add_line(self, line: Line) -> None:
        """Keeps a line of `ctx.log`, which is written when the transaction has ended."""
