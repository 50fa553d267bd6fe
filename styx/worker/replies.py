"""Replies of one epoch: built in serial order, given at most once. The epoch's events leave with them.

A reply already in the replies stream (found there after a recovery) is not given again; it is still remembered for its
idempotency key, as it stands in the stream, and a replay's reply that differs from it is reported. Paper sections 6.4
(early commit replies) and 7.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from styx.messages import ReplyRecord, decode_reply
from styx.sequencer.sequencer import slot_of
from styx.worker.emissions import Emissions
from styx.worker.events import Effect, EmitReplies, ReplyDiffers
from styx.worker.given_replies import is_given
from styx.worker.reply_memory import ReplyMemory
from styx.worker.root import RootTransaction


class Replies:
    """The replies of the open epoch. `answered` has the replies that the stream already holds, or their digests, by
    sequence TID. `n_bytes` is the size of the epoch's results. `emissions` are the worker's events, None if the app has
    none.
    """

    def __init__(self, memories: dict[int, ReplyMemory], n_slots: int, emissions: Emissions | None = None) -> None:
        self.emissions = emissions
        self.answered: dict[int, bytes | int] = {}
        self._n_slots = n_slots
        self._differing: list[ReplyDiffers] = []
        self._memories = memories
        self.n_bytes = 0
        self._epoch = -1
        self._by_slot: dict[int, list[ReplyRecord]] = {}

    def begin(self, epoch: int, replayed: bool = False) -> None:
        """The replies that follow belong to `epoch`."""
        assert not self._by_slot, "an epoch began before the last one's replies were taken"
        if self.answered and not replayed:
            # The rest are replies of other workers, and of transactions that a differing replay has not ended.
            own, n_slots = self._memories, self._n_slots
            self.answered = {tid: given for tid, given in self.answered.items() if slot_of(tid, n_slots) in own}
        self._epoch = epoch
        self.n_bytes = 0
        if self.emissions is not None:
            self.emissions.begin(epoch)

    def add(self, roots: Iterable[RootTransaction], phase: int) -> None:
        """Makes the replies of transactions and of the repetitions that waited for them, and takes the events that the
        phase has committed. Call it in serial order.
        """
        if phase and self.emissions is not None:  # phase 0 commits nothing, and comes when phase 1 is committed
            self.emissions.collect(phase)
        epoch, by_slot, answered = self._epoch, self._by_slot, self.answered
        for root in roots:
            request_id, tid, slot, reply_to = root.request_id, root.tid, root.slot, root.reply_to
            if root.remembered is not None:
                self._repeat(root, root.remembered, request_id, tid, reply_to)
                continue
            failure = root.failure
            if failure is None:
                result, error = root.result, None
                assert result is not None, "a transaction ended without a result or an error"
                self.n_bytes += len(result)
            else:
                result, error = b"", (failure.code, failure.type, failure.message)
            reply = ReplyRecord(request_id, tid, tid, epoch, phase, result, error, reply_to)
            given = by_slot.get(slot)
            if answered and tid in answered:
                reply = self._standing(root, reply)
            elif given is None:
                by_slot[slot] = [reply]
            else:
                given.append(reply)
            if root.idempotency is not None:
                self._memories[slot].remember(root.idempotency, reply, epoch)
            if root.repeats is not None:
                for repeat_id, sequence, repeat_to in root.repeats:
                    self._repeat(root, reply, repeat_id, sequence, repeat_to)

    def _repeat(self, root: RootTransaction, reply: ReplyRecord, request_id: str, sequence: int, reply_to: int) -> None:
        self._give(root, replace(reply, request_id=request_id, sequence=sequence, reply_to=reply_to))

    def _give(self, root: RootTransaction, reply: ReplyRecord) -> None:
        if reply.sequence in self.answered:
            self._standing(root, reply)
            return
        replies = self._by_slot.get(root.slot)
        if replies is None:
            replies = self._by_slot[root.slot] = []
        replies.append(reply)

    def _standing(self, root: RootTransaction, reply: ReplyRecord) -> ReplyRecord:
        """The reply as the stream has it, which repetitions get too. If only its digest is kept, the replay's reply."""
        given = self.answered.pop(reply.sequence)
        if is_given(given, reply):
            return reply
        answered = None if isinstance(given, int) else decode_reply(given)
        self._differing.append(ReplyDiffers(root.slot, reply, root.payload, answered))
        return reply if answered is None else answered

    def take(self) -> list[Effect]:
        """The epoch's events and replies, after the reports of differing ones. Call it when the epoch's records are
        durable on all workers.
        """
        taken: list[Effect] = [] if self.emissions is None else self.emissions.take()
        if self._differing:
            taken.extend(self._differing)
            self._differing = []
        for slot, replies in self._by_slot.items():
            taken.append(EmitReplies(slot, replies))
        self._by_slot = {}
        return taken
