"""Replies remembered for idempotency keys: bounded, first in first out, and part of the slot's state.

The replies stand in a table of the slot, like the entities of an operator, so snapshots and replays contain them.
Section 7.4 of the paper (exactly-once output) ends at the replies topic; idempotency keys extend it to the client.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from styx.messages import ReplyRecord, decode_reply, encode_reply
from styx.model.limits import Limits
from styx.state.slot_state import IDEMPOTENCY_TABLE, SlotState
from styx.state.table import NEWEST


class ReplyMemory:
    """The remembered replies of one slot: at most `keys_max`, and at most `bytes_max` bytes with their keys. The newest
    reply is kept even if it alone is larger.

    The oldest in serial order is forgotten first.
    """

    def __init__(self, state: SlotState, keys_max: int, bytes_max: int) -> None:
        self._table = state.table(IDEMPOTENCY_TABLE)
        self._recall = self._table.reader(NEWEST)
        self._keys_max = keys_max
        self._bytes_max = bytes_max
        self._bytes = 0
        # The oldest key first. A dictionary would be slow here: it finds its first key by passing all deleted ones.
        self._keys: deque[bytes] = deque()
        # The objects of a snapshot do not keep the order of insertion. The replies' places in the serial order give it.
        stored = self._table.at(NEWEST).items()
        for key, value in sorted(stored, key=lambda item: _age(decode_reply(item[1]))):
            self._keys.append(key)
            self._bytes += len(key) + len(value)

    def recall(self, key: bytes) -> bytes | None:
        """The encoded reply to the first request with this key, if it is still remembered."""
        return self._recall(key)

    @property
    def keys(self) -> list[bytes]:
        """The remembered keys; the first one is the next to be forgotten."""
        return list(self._keys)

    def remember(self, key: bytes, reply: ReplyRecord, epoch: int) -> None:
        """Remembers a reply of `epoch`. Call it in serial order, so that each replay forgets the same replies."""
        value = encode_reply(reply)
        size = len(key) + len(value)
        keys, writes = self._keys, dict[Any, bytes | None]()
        while keys and (len(keys) >= self._keys_max or self._bytes + size > self._bytes_max):
            oldest = keys.popleft()
            forgotten = self._recall(oldest)
            if forgotten is not None:
                self._bytes -= len(oldest) + len(forgotten)
                writes[oldest] = None
        keys.append(key)
        self._bytes += size
        writes[key] = value
        self._table.commit(epoch, writes)


def memory_of(state: SlotState, limits: Limits) -> ReplyMemory:
    """The reply memory of a slot, within the deployment's limits."""
    return ReplyMemory(state, limits.idempotency_keys_max, limits.idempotency_bytes_max)


def _age(reply: ReplyRecord) -> tuple[int, int, int]:
    return (reply.epoch, reply.phase, reply.tid)
