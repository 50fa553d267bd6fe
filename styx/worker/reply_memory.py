"""Replies remembered for idempotency keys: bounded, first in first out, and part of the slot's state.

They live in the slot's tables like an operator's entities, so that snapshots and replays hold them. Never
decides whether a request is a repetition. Section 7.4 of the paper (exactly-once output) ends at the topic; this
extends it to the client.
"""

from __future__ import annotations

from styx.messages import ReplyRecord, decode_reply, encode_reply
from styx.worker.slot import IDEMPOTENCY_TABLE, Slot


class ReplyMemory:
    """The remembered replies of one slot, at most `keys_max`; the oldest in serial order is forgotten first."""

    def __init__(self, slot: Slot, keys_max: int) -> None:
        self._slot = slot
        self._keys_max = keys_max
        table = slot.table(IDEMPOTENCY_TABLE)
        # A snapshot's objects do not keep the order of insertion; the records do.
        for key, value in sorted(table.items(), key=lambda item: _age(decode_reply(item[1]))):
            del table[key]
            table[key] = value

    def recall(self, key: bytes) -> bytes | None:
        """The encoded reply to the first request with this key, if it is still remembered."""
        return self._slot.table(IDEMPOTENCY_TABLE).get(key)

    def remember(self, key: bytes, reply: ReplyRecord) -> None:
        """Called in serial order, so that every replay forgets the same."""
        table = self._slot.table(IDEMPOTENCY_TABLE)
        while len(table) >= self._keys_max:
            self._slot.apply(IDEMPOTENCY_TABLE, next(iter(table)), None)
        self._slot.apply(IDEMPOTENCY_TABLE, key, encode_reply(reply))


def _age(reply: ReplyRecord) -> tuple[int, int, int]:
    return (reply.epoch, reply.phase, reply.tid)
