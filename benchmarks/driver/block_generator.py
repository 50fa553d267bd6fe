"""The common part of the workloads' generators. Requests are made in blocks, so `next` mostly takes one from a list.
The outcomes go to a witness.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from benchmarks.driver.workload import Planned
from styx.messages import Reply


class Witness(Protocol):
    """What one client saw of its requests; its methods are those of `Generator`."""

    def answered(self, planned: Planned, reply: Reply) -> None:
        """See `Generator.answered`; nothing follows."""

    def unknown(self, planned: Planned) -> None:
        """See `Generator.unknown`."""

    def report(self) -> Any:
        """See `Generator.witness`."""


class BlockGenerator(ABC):
    """A `Generator`. It takes each list of `next_block` from its end."""

    def __init__(self, witness: Witness) -> None:
        self._block: list[Planned] = []
        self._witness = witness
        # Attributes instead of methods, because they are called for every reply.
        self.answered: Callable[[Planned, Reply], None] = witness.answered
        self.unknown: Callable[[Planned], None] = witness.unknown

    @abstractmethod
    def next_block(self) -> list[Planned]:
        """The next requests, at least one. It must return in about a millisecond, because no request is sent
        meanwhile.
        """

    def next(self) -> Planned:
        """See `Generator.next`."""
        if not self._block:
            self._block = self.next_block()
        return self._block.pop()

    def witness(self) -> Any:
        """See `Generator.witness`."""
        return self._witness.report()
