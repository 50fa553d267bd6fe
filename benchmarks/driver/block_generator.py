"""What the workloads' sources of requests have in common: requests are made in blocks, so that `next` costs one look
into a list most of the time, and what becomes of them is for a witness. Decides nothing of the requests.
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
        """As `Generator.answered`."""

    def unknown(self, planned: Planned) -> None:
        """As `Generator.unknown`."""

    def report(self) -> Any:
        """As `Generator.witness`."""


class BlockGenerator(ABC):
    """A `Generator`; the order of requests is that of `next_block`'s lists, each from its end."""

    def __init__(self, witness: Witness) -> None:
        self._block: list[Planned] = []
        self._witness = witness
        # Not methods: they are called for every reply.
        self.answered: Callable[[Planned, Reply], None] = witness.answered
        self.unknown: Callable[[Planned], None] = witness.unknown

    @abstractmethod
    def next_block(self) -> list[Planned]:
        """The next requests, at least one, in about a millisecond: no request is sent meanwhile."""

    def next(self) -> Planned:
        """As `Generator.next`."""
        if not self._block:
            self._block = self.next_block()
        return self._block.pop()

    def witness(self) -> Any:
        """As `Generator.witness`."""
        return self._witness.report()
