"""The kinds of faults, and the order in which they strike: evenly over the kinds, by a seed. Pure.

All kinds strike once in random order, then once again, and so on; likewise the faults of a kind take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

FAULTS: Final[Mapping[str, Sequence[str]]] = {
    "worker": ("worker", "worker-unreplaced", "frozen-worker", "all-workers"),
    "coordinator": ("coordinator", "frozen-coordinator"),
    "gateway": ("gateway", "gateway-frozen"),
    "broker": ("kafka", "kafka-stops", "kafka-frozen"),
    "store": ("store", "store-frozen"),
    "provider": ("provider-killed", "provider-down", "provider-slow"),
}
"""The faults of each kind, by their names in `striking.py`."""


class Drawn(NamedTuple):
    """A fault that is to strike."""

    kind: str
    fault: str


def drawn(rng: Random, kinds: Sequence[str] = tuple(FAULTS)) -> Iterator[Drawn]:
    """Faults without end."""
    waiting: dict[str, list[str]] = {kind: [] for kind in kinds}
    while True:
        for kind in rng.sample(list(kinds), len(kinds)):
            faults = waiting[kind]
            if not faults:
                faults += rng.sample(list(FAULTS[kind]), len(FAULTS[kind]))
            yield Drawn(kind, faults.pop())
