"""Replies remembered for idempotency keys: bounded, first in first out, and part of the slot's state.

They live in a table of the slot like an operator's entities, so that snapshots and replays contain them. Section 7.4 of
the paper (exactly-once output) ends at the topic; this extends it to the client.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from styx.messages import ReplyRecord, decode_reply, encode_reply
from styx.model.limits import Limits
from styx.state.slot_state import IDEMPOTENCY_TABLE, SlotState
from styx.state.table import NEWEST


class ReplyMemory:
    """The remembered replies of one slot, at most `keys_max` and, but for the last one, `bytes_max` with their keys.

    The oldest in serial order is forgotten first.
    """

    def __init__(self, state: SlotState, keys_max: int, bytes_max: int) -> None:
        self._table = state.table(IDEMPOTENCY_TABLE)
        self._recall = self._table.reader(NEWEST)
        self._keys_max = keys_max
        self._bytes_max = bytes_max
        self._bytes = 0
        # The oldest first: a dictionary looks for its first key behind all those that were taken out before it.
        self._keys: deque[bytes] = deque()
        # A snapshot's objects do not keep the order of insertion; the records do.
        stored = self._table.at(NEWEST).items()
        for key, value in sorted(stored, key=lambda item: _age(decode_reply(item[1]))):
            self._keys.append(key)
            self._bytes += len(key) + len(value)

    def recall(self, key: bytes) -> bytes | None:
        """The encoded reply to the first request with this key, if it is still remembered."""
        return self._recall(key)

    @property
    def keys(self) -> list[bytes]:
        """Those that are remembered, the next to be forgotten first."""
        return list(self._keys)

    def remember(self, key: bytes, reply: ReplyRecord, epoch: int) -> None:
        """The reply is one of `epoch`. Called in serial order, so that every replay forgets the same."""
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
    """A slot's, within a deployment's limits."""
    return ReplyMemory(state, limits.idempotency_keys_max, limits.idempotency_bytes_max)


def _age(reply: ReplyRecord) -> tuple[int, int, int]:
    return (reply.epoch, reply.phase, reply.tid)
