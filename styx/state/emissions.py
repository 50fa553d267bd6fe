"""The table that the emissions of an operator's entities are written to: it keeps nothing, and hands on what a commit
writes. So it is in no snapshot, and a read finds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from styx.state.table import Table


class Emission(NamedTuple):
    """What a commit has written: the table's operator, the emission's key there, and its `EmittedEvent`, encoded."""

    operator: str
    key: tuple[str | int, ...]
    data: bytes


class EmissionTable(Table):
    """Of one operator on one slot; what is written goes to `taken`, which is the slot's."""

    __slots__ = ("_operator", "_taken")

    def __init__(self, operator: str, taken: list[Emission]) -> None:
        super().__init__({}, -1)
        self._operator = operator
        self._taken = taken

    def write(self, epoch: int, key: Any, value: bytes | None) -> None:
        """Hands it on."""
        assert value is not None, "an event that was emitted is never taken back by a commit"
        self._taken.append(Emission(self._operator, key, value))

    def commit(self, epoch: int, writes: Mapping[Any, bytes | None]) -> None:
        """Hands them on."""
        for key, value in writes.items():
            self.write(epoch, key, value)
