"""The intake of an epoch: carried transactions, transactions resumed after an external call, and new requests.

Forms an epoch's batches in normal work, and forms them again from the record in a replay. It keeps the transactions
that have been sequenced and have not ended. Paper sections 5.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec
from msgspec.structs import replace

from styx.messages import decode_request, encode_request
from styx.model.app import App
from styx.model.execution import SET_ASIDE
from styx.model.limits import Limits
from styx.protocol.frames import ExternalDone
from styx.protocol.manifest import PassedOver, PendingTransaction
from styx.sequencer.epoch_record import EpochPlan, SlotBatch
from styx.sequencer.sequencer import Recorded, SlotSequencer, slot_of, tid
from styx.state.due_calls import DueCall
from styx.state.slot_state import SlotState
from styx.worker.admission import Admission
from styx.worker.blame import blame_record
from styx.worker.deliveries import DUE_MAX, NOWHERE, Deliveries
from styx.worker.events import NotResumed, ReportPoison
from styx.worker.invocation import Running
from styx.worker.pressure import Pressure
from styx.worker.reply_memory import ReplyMemory
from styx.worker.root import RootTransaction

OUTCOME_BYTES_MAX = 2 * 1024 * 1024
"""Limit on the outcomes of external functions in one epoch record, in bytes, because a log takes records of some MiB.
The limit is two values if `value_bytes_max` makes these larger.
"""


class Intake:
    """The transactions that wait for an epoch. The `carried` go into the next one. The `parked`, by TID, wait for an
    external function. Requests at the places (slot, offset) in `aside` are refused.
    """

    def __init__(self, app: App, limits: Limits, n_slots: int, running: Running | None = None) -> None:
        self.carried: list[RootTransaction] = []
        self.parked: dict[int, RootTransaction] = {}
        self.aside: AbstractSet[tuple[int, int]] = frozenset()
        self.pressure = Pressure(limits.epoch_result_bytes_max, limits.epoch_transactions_max)
        self._limits = limits
        self._n_slots = n_slots
        self._admission = Admission(app, limits, n_slots, running)
        self._sequencers: dict[int, SlotSequencer] = {}
        self._memories: dict[int, ReplyMemory] = {}
        self._unstarted: set[int] = set()
        self._turn = 0
        self._told: list[ReportPoison | NotResumed] = []
        self.local: list[RootTransaction] = []
        self.deliveries = Deliveries(app)

    def add_slot(
        self,
        slot: int,
        next_offset: int,
        pending: list[PendingTransaction],
        passed_over: PassedOver | None,
        memory: ReplyMemory,
        state: SlotState,
    ) -> None:
        """Adds a slot in the state that a snapshot has of it."""
        self.deliveries.add_slot(slot, state)
        self._sequencers[slot] = SlotSequencer(slot, next_offset, passed_over)
        self._memories[slot] = memory
        for transaction in pending:
            if (slot, transaction.offset) in self.aside:
                transaction = replace(transaction, payload=_refused(transaction.payload))  # noqa: PLW2901 - the same one
            self._readmit(slot, transaction)

    def _readmit(self, slot: int, pending: PendingTransaction) -> None:
        delivers = pending.offset == NOWHERE
        root = (self.deliveries if delivers else self._admission).readmit(slot, pending)
        if root is None:
            return
        root.sequential = pending.sequential
        root.externals = pending.externals
        root.repeats = list(pending.repeats)
        if pending.parked:
            self.parked[root.tid] = root
            self._unstarted.add(root.tid)
        else:
            self.carried.append(root)

    # Arrivals ----------------------------------------------------------------------------------------------

    def arrive(self, slot: int, arrivals: Sequence[Recorded]) -> None:
        """Takes records of a slot's requests stream; those of another worker's slot are ignored."""
        sequencer = self._sequencers.get(slot)
        if sequencer is None:
            return
        if self.aside:
            arrivals = [
                (each[0], each[1], _refused(each[2])) if (slot, each[0]) in self.aside else each for each in arrivals
            ]
        sequencer.arrive(arrivals)

    def defer(self, root: RootTransaction) -> None:
        """Takes a transaction that leaves the epoch, to be counted exactly or to make an external call in sequential
        mode.
        """
        if root.external and not root.overflow and root.sequential:
            self.parked[root.tid] = root
        else:
            root.sequential = True
            self.carried.append(root)

    def outcome(self, done: ExternalDone) -> None:
        """Takes the outcome of an external call. Ignores it if no parked transaction waits for it."""
        root = self.parked.get(done.tid)
        if root is not None and done.key not in (root.externals or {}):
            self._sequencers[done.root_slot].ready.setdefault(done.tid, {})[done.key] = done.outcome
            self._unstarted.discard(done.tid)

    @property
    def backlog(self) -> int:
        """Requests that have arrived and are in no epoch yet."""
        return sum(sequencer.count for sequencer in self._sequencers.values())

    def waiting(self) -> dict[int, tuple[int, int]]:
        """Requests that have arrived and are in no epoch yet, by slot: (number, bytes)."""
        return {slot: (each.count, each.waiting_bytes) for slot, each in self._sequencers.items()}

    @property
    def has_work(self) -> bool:
        """Whether an epoch formed now would hold a transaction."""
        if self.pressure.halted:
            return False
        if self.carried or self._unstarted:
            return True
        full = self._full_slots() if self.parked else frozenset()
        takes = not self.pressure.congested
        if takes and self.deliveries.any and self.deliveries.has_due(full):
            return True
        return any(s.ready or (takes and s.count and s.slot not in full) for s in self._sequencers.values())

    def _full_slots(self) -> frozenset[int]:
        """Slots that take no new requests, because too many of their transactions wait for external functions."""
        counts: dict[int, int] = {}
        for root in self.parked.values():
            counts[root.slot] = counts.get(root.slot, 0) + 1
        return frozenset(slot for slot, count in counts.items() if count >= self._limits.parked_max)

    # Epochs ------------------------------------------------------------------------------------------------

    def form(self, counter: int) -> tuple[list[RootTransaction], list[SlotBatch]]:
        """The next epoch's transactions, and the batches for its record; slots take turns at being first."""
        if self.pressure.halted:
            return [], [sequencer.nothing() for _, sequencer in sorted(self._sequencers.items())]
        for parked in self._unstarted:
            # Its external call was under way when the snapshot was taken. Only this worker starts it again.
            self._sequencers[slot_of(parked, self._n_slots)].ready.setdefault(parked, {})
        self._unstarted = set()
        full = self._full_slots() if self.parked else frozenset()
        roots = self._carried_over(frozenset())
        has_room = self.pressure.begin(roots)
        batches = []
        slots = sorted(self._sequencers)
        # Slots without requests leave their share to the others, so that a busy one can fill an epoch by itself.
        busy = set[int]()
        for slot in slots:
            if self._sequencers[slot].count and slot not in full:
                busy.add(slot)
        # At least one outcome fits, so each gets its turn.
        outcome_bytes = max(OUTCOME_BYTES_MAX, 2 * self._limits.value_bytes_max)
        room = 0 if self.pressure.congested else self.pressure.room(len(roots))
        turn = self._turn % len(slots) if slots else 0
        moves = room > 0
        due_max = min(DUE_MAX, max(1, room // (2 * len(slots)))) if moves and self.deliveries.any else 0
        for slot in slots[turn:] + slots[:turn]:
            share = -(-room // len(busy)) if slot in busy else 0
            busy.discard(slot)
            sequencer = self._sequencers[slot]
            if slot == slots[turn] and share and has_room is not None and sequencer.passed:
                # The oldest request of the first slot may find no room beside the carried transactions, epoch after
                # epoch. So room is reserved for it: no other large request precedes it, and the slot stays first.
                moves = self.pressure.reserve(sequencer.oldest)
            batch, taken = sequencer.batch(share, outcome_bytes, has_room)
            now_us = self.deliveries.now_us
            due = self.deliveries.take(slot, now_us, due_max) if due_max and slot not in full else []
            if due:
                batch = replace(batch, due=len(due), now_us=now_us)
            room -= batch.count + batch.due
            outcome_bytes -= sum(len(o) for resumed in batch.resumed for o in resumed.outcomes.values())
            self._admit(slot, counter, batch, taken, roots)
            if due:
                self._deliver(slot, counter, batch, due, roots)
            batches.append(batch)
        self._turn += moves
        return roots, batches

    def _deliver(
        self, slot: int, counter: int, batch: SlotBatch, due: list[DueCall], roots: list[RootTransaction]
    ) -> None:
        """Makes the transactions that make the calls; their TIDs follow those of the batch's requests."""
        first = counter + batch.count
        for number, call in enumerate(due, first):
            roots.append(self.deliveries.root(slot, tid(slot, number, self._n_slots), call, batch.now_us))

    def can_replay(self, plan: EpochPlan) -> bool:
        """Whether all requests and outcomes of the recorded epoch have arrived."""
        return all(s.has_recorded(plan.batches[s.slot]) for s in self._sequencers.values())

    def replay(self, plan: EpochPlan) -> tuple[list[RootTransaction], list[SlotBatch]]:
        """Forms a recorded epoch again: the same transactions with the same TIDs."""
        roots = self._carried_over(frozenset(batch.slot for batch in plan.batches.values() if batch.idle))
        self._admission.verdicts = plan.ended
        for slot, sequencer in sorted(self._sequencers.items()):
            batch = plan.batches[slot]
            self._admit(slot, plan.counter, batch, sequencer.replay(batch), roots)
            if batch.due:
                due = self.deliveries.take(slot, batch.now_us, batch.due)
                assert len(due) == batch.due, "a replayed epoch finds other calls due than recorded"
                self._deliver(slot, plan.counter, batch, due, roots)
        self._admission.verdicts = {}
        return roots, list(plan.batches.values())

    def take_told(self) -> list[ReportPoison | NotResumed]:
        """Reports from the forming of the last epoch: records that are no requests, and failed resumptions."""
        told, self._told = self._told, []
        return told

    def take_local(self) -> list[RootTransaction]:
        """The transactions of the last epoch that are to run in phase 3, in TID order."""
        local, self.local = self.local, []
        local.sort(key=_tid)
        return local

    def _carried_over(self, idle: frozenset[int]) -> list[RootTransaction]:
        roots = [root for root in self.carried if root.slot not in idle] if idle else self.carried
        self.carried = [root for root in self.carried if root.slot in idle] if idle else []
        for root in roots:
            root.begin()
        return roots

    def _admit(
        self, slot: int, counter: int, batch: SlotBatch, taken: list[Recorded], roots: list[RootTransaction]
    ) -> None:
        for resumed in batch.resumed:
            root = self.parked.pop(resumed.tid, None)
            if root is None:  # it was parked when the epoch was recorded, so a function is not deterministic
                self._told.append(NotResumed(slot, resumed.tid))
                continue
            self._unstarted.discard(resumed.tid)
            root.externals = {**(root.externals or {}), **resumed.outcomes}
            root.begin()
            roots.append(root)
        memory = self._memories[slot]
        if not taken:
            return
        admission, n_slots = self._admission, self._n_slots
        first, last = tid(slot, counter, n_slots), tid(slot, counter + len(taken) - 1, n_slots)
        for sequence, recorded in zip(range(first, last + 1, n_slots), taken, strict=True):
            try:
                admitted = admission.admit(slot, sequence, recorded, memory)
            except BaseException as error:
                blame_record(error, slot, recorded[0])
                raise
            if type(admitted) is RootTransaction:
                roots.append(admitted)
                function = admitted.function
                if function is not None and function.local and not admitted.done:
                    admitted.local = True
                    self.local.append(admitted)
            elif type(admitted) is ReportPoison:
                self._told.append(admitted)

    def ended(self, root: RootTransaction) -> None:
        """Forgets a transaction, which has been answered."""
        self._admission.ended(root)

    def settled(self, roots: list[RootTransaction]) -> list[RootTransaction]:
        """Those of an epoch's transactions that have ended; a delivery that has failed is carried, to be put off."""
        ended = list[RootTransaction]()
        for root in roots:
            if root.entry is None or self.deliveries.ended(root):
                ended.append(root)
            else:
                self.carried.append(root)
        return ended

    # Snapshots ---------------------------------------------------------------------------------------------

    def rest(self, slot: int) -> tuple[int, list[PendingTransaction], PassedOver | None]:
        """What a snapshot stores of a slot between two epochs: (offset of the next request, sequenced and unfinished
        transactions, which requests behind that offset are sequenced already).
        """
        pending = [
            PendingTransaction(
                root.tid,
                root.offset,
                root.timestamp_us,
                root.payload,
                root.sequential,
                root.tid in self.parked,
                root.externals,
                list(root.repeats or ()),
            )
            for root in (*self.carried, *self.parked.values())
            if root.slot == slot
        ]
        next_offset, passed_over = self._sequencers[slot].rest()
        return next_offset, pending, passed_over


def _tid(root: RootTransaction) -> int:
    return root.tid


def _refused(payload: bytes) -> bytes:
    """Replaces a request's payload by a request that is always refused and never run."""
    try:
        return encode_request(replace(decode_request(payload), function=SET_ASIDE))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return payload  # it cannot be decoded as a request, and is skipped later
