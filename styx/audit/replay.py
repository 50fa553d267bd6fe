"""The protocol's cores on some number of workers, in one process: they run recorded epochs again, one at a time.

No socket, log, store or clock is behind them, and no external function is ever called: a record says with which
outcomes a transaction went on. Messages arrive in the order in which they were sent. Paper section 7.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from styx.audit.verdict import CannotJudge
from styx.coordinator.barrier import EpochBarriers, PatchRounds, SnapshotDue
from styx.log.base import Arrival
from styx.messages import EventRecord, ReplyRecord
from styx.model.app import App
from styx.model.execution import with_own_generators
from styx.model.limits import Limits
from styx.protocol.manifest import Manifest
from styx.protocol.messages import Conflicts, Done, Loaded, LockReport, Recover, Resume
from styx.sequencer.epoch_record import EpochPlan
from styx.state.slot_state import SlotState
from styx.worker.epoch import Watch
from styx.worker.events import (
    CoordinatorSaid,
    Effect,
    EmitEvents,
    EmitReplies,
    Event,
    FrameArrived,
    Halted,
    LoadState,
    NotResumed,
    Proceed,
    RequestsArrived,
    SendFrame,
    SlotContent,
    StateLoaded,
    Step,
    StoreSlots,
    Tell,
)
from styx.worker.worker import Worker

GENERATION: Final = 2**31
"""Of the replay; no deployment has come to so many."""


class Recorded(Mapping[bytes, bytes]):
    """Outcomes of external calls: there is one of each, so that no worker keeps a call that it would have to make. It
    is nowhere used, since a record has those with which its transactions go on.
    """

    def __getitem__(self, key: bytes) -> bytes:
        return b""

    def __iter__(self) -> Iterator[bytes]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Replayed:
    """What a replayed epoch has given: replies and events in no order, and the transactions that it should have resumed
    after an external call and could not.
    """

    def __init__(self) -> None:
        self.replies: list[ReplyRecord] = []
        self.events: list[EventRecord] = []
        self.not_resumed: list[NotResumed] = []


class StandsStill(Exception):
    """The cores wait for what will never come, because a function has not done what it did when it ran first."""


class Replay:
    """Of the epochs behind the snapshot `before` (None: behind nothing), by `workers` workers, which share the slots.

    `load` answers the cores' wish for their state. `watches` observe the workers, one each. `rounds` is how many rounds
    a lock phase may have in the deployment.
    """

    def __init__(
        self,
        app: App,
        version: int,
        limits: Limits,
        n_slots: int,
        before: Manifest | None,
        load: Callable[[LoadState], StateLoaded],
        watches: list[Watch],
        rounds: PatchRounds,
    ) -> None:
        workers = range(len(watches))
        self._cores = {worker: Worker(worker, app, n_slots, limits, watch=watches[worker]) for worker in workers}
        self._owners = {slot: slot % len(watches) for slot in range(n_slots)}
        self._load = load
        self._events: deque[tuple[int, Event]] = deque()
        self._rounds = rounds
        self._barriers = EpochBarriers(GENERATION, -1, workers)
        self._given = Replayed()
        self._loaded = 0
        self._wanted: Callable[[], SnapshotDue | None] = lambda: None
        self.contents: dict[int, SlotContent] = {}
        addresses = dict.fromkeys(workers, "")
        for worker in workers:
            self._events.append((worker, Halted(True)))
        self._say(Recover(GENERATION, self._owners, before, addresses, version))
        self._settle()
        assert self._loaded == len(watches), "a worker has not taken its state"
        # Nothing is interrupted here, so that it does not matter how far replies reach.
        self._say(Resume(GENERATION))
        self._settle()

    def run(self, plan: EpochPlan, arrivals: Mapping[int, list[Arrival]], last: bool = False) -> Replayed:
        """Runs an epoch, the next one, with the requests (by slot) that it is the first to need. Behind the `last` one
        the workers say what a snapshot would hold (`contents`). Raises `StandsStill`, and `AssertionError` where a core
        finds that something is not as recorded.
        """
        given = self._given = Replayed()
        self._barriers = EpochBarriers(GENERATION, plan.epoch, self._cores, self._rounds)
        self._wanted = (lambda: SnapshotDue(True, [])) if last else (lambda: None)
        for core in self._cores.values():
            core.generation_data.replay_further(plan)
        for slot, owner in self._owners.items():
            self._events.append((owner, RequestsArrived(GENERATION, slot, arrivals.get(slot, ()))))
        self._settle()
        if not self._barriers.ended or any(core.reached not in _BETWEEN for core in self._cores.values()):
            raise StandsStill
        return given

    def state(self, slot: int) -> SlotState:
        """What the slot has now."""
        return self._cores[self._owners[slot]].slots[slot].state

    def end(self) -> None:
        """Frees all state."""
        for core in self._cores.values():
            core.end()

    def _say(self, message: object) -> None:
        for worker in self._cores:
            self._events.append((worker, CoordinatorSaid(message)))  # type: ignore[arg-type]

    def _settle(self) -> None:
        """Gives the events to their cores until none is left, and no function can run."""
        events, cores = self._events, self._cores
        while True:
            while events:
                worker, event = events.popleft()
                for effect in with_own_generators(cores[worker].step, event):
                    self._do(worker, effect)
            for worker, core in cores.items():
                if core.runnable:
                    events.append((worker, _PROCEED))
            if not events:
                return

    def _do(self, worker: int, effect: Effect) -> None:
        match effect:
            case SendFrame():
                self._events.append((effect.peer, FrameArrived(effect.frame)))
            case Tell(message=Done() | Conflicts() | LockReport() as report):
                decision = self._barriers.take(worker, report, self._wanted)
                if decision is not None:
                    self._say(decision)
            case Tell(message=Loaded()):
                self._loaded += 1
            case EmitReplies():
                self._given.replies += effect.replies
            case EmitEvents():
                self._given.events += effect.events
            case NotResumed():
                self._given.not_resumed.append(effect)
            case LoadState():
                self._events.append((worker, self._load(effect)))
            case StoreSlots():
                self.contents.update({content.slot: content for content in effect.slots})
            case _:
                assert type(effect).__name__ not in _NEVER, f"a replay wants {effect}"


_BETWEEN: Final = (Step.IDLE, Step.HOLDING)
_PROCEED: Final = Proceed()
_NEVER: Final = frozenset({"AppendEpochRecord", "AppendVerdicts", "AppendExternal", "RunExternal"})
"""Effects of new epochs alone."""


def workers_for(recorded: int, n_slots: int, wanted: int | None) -> int:
    """How many workers replay what so many have recorded: another number, if there are slots for it."""
    if wanted is not None:
        if not 1 <= wanted <= n_slots:
            raise CannotJudge(f"--workers is a number from 1 to {n_slots}, the deployment's slots, got {wanted}")
        return wanted
    return min(n_slots, 2 if recorded != 2 else 3)
