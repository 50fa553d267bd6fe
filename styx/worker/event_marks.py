"""Marks in the logs of events: which epochs are wholly in the log before them, so that readers of many partitions know
a consistent cut.

The worker tells the coordinator, once before each mark, that a mark is missing. The coordinator says when, and which
epoch all workers' marks name. A mark leaves behind the events of that epoch, in whatever phase they were emitted.
"""

from __future__ import annotations

from styx.protocol.messages import Emitted
from styx.worker.events import Effect, MarkEvents, Tell


class EventMarks:
    """Of one generation on one worker. `unmarked` is the last epoch that has closed with events. `partitions` are all
    that a mark goes to, on all workers.
    """

    def __init__(self, generation: int, partitions: int) -> None:
        self.unmarked = -1
        self._generation = generation
        self._partitions = partitions
        self._closed = -1
        self._marked = -1
        self._told = False
        self._wanted: int | None = None

    def begin(self, epoch: int) -> list[Effect]:
        """A generation begins behind `epoch`; the last one may have ended before the mark of its last events. Behind
        -1 there are none but those of epochs that are replayed.
        """
        self._closed = self.unmarked = epoch
        return self._go_on()

    def closed(self, epoch: int, emitted: bool) -> list[Effect]:
        """The epoch has closed; its events, if it has any, have left."""
        self._closed = epoch
        if emitted:
            self.unmarked = epoch
        return self._go_on()

    def wanted(self, epoch: int) -> list[Effect]:
        """The coordinator wants marks behind `epoch`, which is decided, but may not have closed here."""
        self._wanted = epoch
        self._told = False
        return self._go_on()

    def _go_on(self) -> list[Effect]:
        effects: list[Effect] = []
        if self._wanted is not None and self._wanted <= self._closed:
            self._marked, self._wanted = self._wanted, None
            effects.append(MarkEvents(self._marked))
        if self.unmarked > self._marked and not self._told and self._wanted is None:
            self._told = True
            effects.append(Tell(Emitted(self._generation, self.unmarked, self._partitions)))
        return effects
