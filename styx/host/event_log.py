"""The last events that a process's cores took. A core that fails leaves them in a dump (`styx.host.event_dump`).

The log is bounded in events and in bytes, and holds no loaded state. Bytes are an estimate: requests, frames, replies,
packages and outcomes of external calls count exactly, entries of a load count as `ENTRY_BYTES`, all else as nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final

import msgspec

from styx.coordinator.control_events import Package, PackageOffered, VersionFound, VersionRead
from styx.coordinator.events import Started, WorkerSaid
from styx.protocol.manifest import Manifest, SlotPart
from styx.protocol.messages import Reached, Recover, SlotsStored
from styx.sequencer.epoch_record import EpochPlan
from styx.worker.events import (
    CoordinatorSaid,
    ExternalAppended,
    ExternalReturned,
    Halted,
    LogLags,
    SlotPartsStored,
    StateLoaded,
)

EVENTS_MAX: Final = 100
"""Events that are kept: references, and copies only of what the core changes. More of them would push what a
transaction reads out of the processor's cache.
"""
BYTES_MAX: Final = 256 * 1024
"""Bytes of these events. One event that is larger is kept until the next one comes."""
ENTRY_BYTES: Final = 100
"""The estimate of an entry of a dictionary, and of a slot's batch of a recorded epoch, without their contents."""

Step = Callable[[Any], object]
"""Gives a core an event and carries out its effects."""
Item = tuple[Step, Any, int]
"""(the step that takes it, the event, its bytes)."""


class KeptLoad(msgspec.Struct):
    """`StateLoaded` as it came, without the slots, which the snapshot has."""

    generation: int
    plans: list[EpochPlan]
    answered: dict[int, bytes | int]
    answered_until: Reached
    outcomes: Mapping[bytes, bytes]
    aside: AbstractSet[tuple[int, int]]


class EventLog:
    """`items` are the last ones, the oldest first, of `n_bytes` together; `whole`: there were no others. Only
    `styx.host.passes.settle` adds events.
    """

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self.n_bytes = 0
        self.whole = True
        self._pressed: dict[type, Item] = {}
        self._pressed_before: list[Item] = []

    def clear(self) -> None:
        """Nothing is kept any more."""
        self.items.clear()
        self.n_bytes = 0
        self._pressed = {}
        self._pressed_before = []

    def of(self, core: Step) -> tuple[list[Any], bool]:
        """(the core's events, whether they are all since it began; or since a worker's last generation began). Before
        the generation's first event stand the last `LogLags` and `Halted`, which outlast generations.
        """
        events = [event for step, event, _ in self.items if step == core]
        begins = [index for index, event in enumerate(events) if _begins(event)]
        if not begins:
            return events, self.whole
        return [*(event for _, event, _ in self._pressed_before), *events[begins[-1] :]], True

    def noted(self, item: Item) -> Item:
        """What is kept of an item whose event, or its message, is one of `NOTED`."""
        step, event, n_bytes = item
        if isinstance(event, LogLags | Halted):
            self._pressed[type(event)] = item
        elif _begins(event):
            self._pressed_before = list(self._pressed.values())
            n_bytes += _bytes_of_manifests([event.message.manifest])
        elif isinstance(event, StateLoaded):
            answered = event.answered.copy()  # the core takes out what is answered again
            rest = event.answered_until, event.outcomes, event.aside
            return step, KeptLoad(event.generation, event.plans, answered, *rest), _bytes_of_load(event)
        elif isinstance(event, SlotPartsStored):
            n_bytes += _bytes_of_parts(event.parts or [])
        elif isinstance(event, WorkerSaid) and isinstance(event.message, SlotsStored):
            n_bytes += _bytes_of_parts(event.message.parts or [])
        elif isinstance(event, Started):
            n_bytes += _bytes_of_manifests(event.manifests)
        elif isinstance(event, VersionFound | PackageOffered | VersionRead):
            n_bytes += len(event.package.content) if isinstance(event.package, Package) else 0
        else:
            n_bytes += len(event.outcome or b"")
        return step, event, n_bytes


def _bytes_of_load(load: StateLoaded) -> int:
    """The estimate of a load's bytes, without its slots. It takes time once a generation."""
    replies, outcomes = load.answered, load.outcomes
    entries = len(replies) + len(outcomes) + len(load.aside) + sum(len(plan.batches) for plan in load.plans)
    contents = chain(outcomes.values(), (reply for reply in replies.values() if isinstance(reply, bytes)))
    return entries * ENTRY_BYTES + sum(map(len, contents))


def _bytes_of_manifests(manifests: Iterable[Manifest | None]) -> int:
    return sum(_bytes_of_parts([slot.part for slot in each.slots]) for each in manifests if each is not None)


def _bytes_of_parts(parts: list[SlotPart]) -> int:
    """The requests of transactions that a snapshot finds unfinished."""
    return sum(len(pending.payload) for part in parts for pending in part.pending)


def _begins(event: Any) -> bool:
    return isinstance(event, CoordinatorSaid) and isinstance(event.message, Recover)


NOTED: Final = frozenset(
    {
        ExternalAppended,
        ExternalReturned,
        Halted,
        LogLags,
        PackageOffered,
        Recover,
        SlotPartsStored,
        SlotsStored,
        Started,
        StateLoaded,
        VersionFound,
        VersionRead,
    }
)
"""Events, and messages in events, of which more is to be done than to keep a reference."""
CARRIERS: Final = frozenset({CoordinatorSaid, WorkerSaid})
"""Events with a message."""
