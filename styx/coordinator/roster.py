"""The roster: all registered workers, whether they take part or not, and the facts about each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from styx.coordinator.control_events import WorkerBeat


@dataclass(slots=True)
class Registration:
    """One worker's. `joined` once the protocol knows it.

    `taken` are the versions of the app that it can run, `refused` says of others why it cannot. `leaving`: it is to
    have no slots any more, and has none once it is `released`. `spare` is what it was told last of standing by.
    `busy_at_s`: when a function was last said to hold it up.
    """

    number: int
    name: str
    incarnation: str = ""
    address: str = ""
    joined: bool = False
    leaving: bool = False
    released: bool = False
    spare: bool | None = None
    beat: WorkerBeat | None = None
    busy_at_s: float = -math.inf
    taken: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)


class Roster:
    """`workers` by number."""

    def __init__(self) -> None:
        self.workers: dict[int, Registration] = {}

    def members(self, numbers: Iterable[int]) -> list[Registration]:
        """Those of these that are registered."""
        return [self.workers[number] for number in numbers if number in self.workers]

    def named(self, name: str) -> list[Registration]:
        """Those that an operator calls so."""
        return [each for each in self.workers.values() if each.name == name]
