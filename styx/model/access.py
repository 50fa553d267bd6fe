"""An access: one step of a transaction on many entities of one operator and slot, without a cell for each of them.

A bulk load is one. A scan of a range would be one that writes nothing and overlaps every key of the range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from styx.model.partitioning import Key


class Access:
    """`writes` are the encoded states that the access leaves, by key."""

    __slots__ = ("operator", "writes")

    def __init__(self, operator: str, writes: dict[Key, bytes]) -> None:
        self.operator = operator
        self.writes = writes

    def overlaps(self, key: Key) -> bool:
        """Whether the access reads or writes the operator's entity `key`; one without state counts as well."""
        raise NotImplementedError

    def result(self, read: Callable[[Key], bytes | None]) -> Any:
        """The function's result; `read` gives an entity's state as the transaction sees it."""
        raise NotImplementedError
