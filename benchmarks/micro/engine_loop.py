"""The engine alone: one worker's and the coordinator's protocol cores, request bytes in, reply bytes out, no
network or disk.
"""

from __future__ import annotations

from collections import deque

from styx.app import App
from styx.coordinator import events as coordinator_events
from styx.coordinator.coordinator import Coordinator
from styx.limits import Limits
from styx.messages import ReplyRecord, encode_reply
from styx.sequencer.arrival import Arrival
from styx.worker import events as worker_events
from styx.worker.worker import Worker


class EngineLoop:
    """One worker with all slots; epoch records count as durable at once."""

    def __init__(self, app: App, n_slots: int = 4, limits: Limits | None = None) -> None:
        self.n_slots = n_slots
        self.replies: list[bytes] = []
        self.worker = Worker(0, app, n_slots, Limits() if limits is None else limits)
        self._coordinator = Coordinator(n_slots, snapshot_interval_s=float("inf"))
        self._offsets = [0] * n_slots
        self._to_worker: deque[worker_events.Event] = deque()
        self._tell_coordinator(coordinator_events.Started(0, []))
        self._tell_coordinator(coordinator_events.WorkerJoined(0))
        self._settle()

    def run(self, requests: list[tuple[int, bytes]]) -> list[bytes]:
        """The encoded replies to (slot, encoded request) pairs, as they are given."""
        self.replies = []
        arrivals: list[list[Arrival]] = [[] for _ in range(self.n_slots)]
        for slot, payload in requests:
            arrivals[slot].append(Arrival(self._offsets[slot], 0, payload))
            self._offsets[slot] += 1
        for slot, records in enumerate(arrivals):
            self._to_worker.append(worker_events.RequestsArrived(slot, records))
        self._settle()
        return self.replies

    def _settle(self) -> None:
        worker, events = self.worker, self._to_worker
        while events or worker.runnable:
            event = events.popleft() if events else worker_events.Proceed()
            for effect in worker.step(event):
                self._do(effect)

    def _do(self, effect: worker_events.Effect) -> None:
        if isinstance(effect, worker_events.Tell):
            self._tell_coordinator(coordinator_events.WorkerSaid(0, effect.message))
        elif isinstance(effect, worker_events.AppendEpochRecord):
            self._to_worker.append(worker_events.RecordDurable(effect.generation, effect.epoch))
        elif isinstance(effect, worker_events.EmitReplies):
            self._emit(effect.replies)
        elif isinstance(effect, worker_events.LoadState):
            empty = {slot: worker_events.LoadedSlot({}, 0, []) for slot in effect.slots}
            self._to_worker.append(worker_events.StateLoaded(effect.generation, -1, 0, empty, [], {}))
        else:
            raise AssertionError(f"this loop has no part for {effect}")

    def _emit(self, replies: list[ReplyRecord]) -> None:
        self.replies.extend(map(encode_reply, replies))

    def _tell_coordinator(self, event: coordinator_events.Event) -> None:
        for effect in self._coordinator.step(event):
            if isinstance(effect, coordinator_events.TellWorker):
                self._to_worker.append(worker_events.CoordinatorSaid(effect.message))
            elif isinstance(effect, coordinator_events.AppendMarker):
                self._tell_coordinator(coordinator_events.MarkerAppended(effect.generation))
