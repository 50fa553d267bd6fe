"""Replies remembered for idempotency keys: bounded, first in first out, and part of the slot's state.

They live in the slot's tables like an operator's entities, so that snapshots and replays contain them. Section 7.4 of
the paper (exactly-once output) ends at the topic; this extends it to the client.
"""

from __future__ import annotations

from collections import deque

from styx.messages import ReplyRecord, decode_reply, encode_reply
from styx.model.limits import Limits
from styx.worker.slot import IDEMPOTENCY_TABLE, Slot


class ReplyMemory:
    """The remembered replies of one slot, at most `keys_max` and, but for the last one, `bytes_max` with their keys.

    The oldest in serial order is forgotten first.
    """

    def __init__(self, slot: Slot, keys_max: int, bytes_max: int) -> None:
        self._slot = slot
        self._keys_max = keys_max
        self._bytes_max = bytes_max
        self._bytes = 0
        # The oldest first: a dictionary looks for its first key behind all those that were taken out before it.
        self._keys: deque[bytes] = deque()
        table = slot.table(IDEMPOTENCY_TABLE)
        # A snapshot's objects do not keep the order of insertion; the records do.
        for key, value in sorted(table.items(), key=lambda item: _age(decode_reply(item[1]))):
            del table[key]
            table[key] = value
            self._keys.append(key)
            self._bytes += len(key) + len(value)

    def recall(self, key: bytes) -> bytes | None:
        """The encoded reply to the first request with this key, if it is still remembered."""
        return self._slot.table(IDEMPOTENCY_TABLE).get(key)

    def remember(self, key: bytes, reply: ReplyRecord) -> None:
        """Called in serial order, so that every replay forgets the same."""
        value = encode_reply(reply)
        size = len(key) + len(value)
        keys = self._keys
        while keys and (len(keys) >= self._keys_max or self._bytes + size > self._bytes_max):
            self._forget(keys.popleft())
        keys.append(key)
        self._bytes += size
        self._slot.apply(IDEMPOTENCY_TABLE, key, value)

    def _forget(self, key: bytes) -> None:
        value = self._slot.table(IDEMPOTENCY_TABLE).get(key)
        if value is not None:
            self._bytes -= len(key) + len(value)
            self._slot.apply(IDEMPOTENCY_TABLE, key, None)


def memory_of(slot: Slot, limits: Limits) -> ReplyMemory:
    """A slot's, within a deployment's limits."""
    return ReplyMemory(slot, limits.idempotency_keys_max, limits.idempotency_bytes_max)


def _age(reply: ReplyRecord) -> tuple[int, int, int]:
    return (reply.epoch, reply.phase, reply.tid)
