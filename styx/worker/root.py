"""A transaction at its root slot: the request, and what its branches have reported in this epoch.

Knows when the transaction is done (every ack share is back) and how it ended so far; never runs anything.
Paper sections 5.2 and 5.3.
"""

from __future__ import annotations

from styx.context import CallSpec
from styx.messages import ReplyRecord, Request
from styx.worker.ack_share import Outstanding
from styx.worker.messages import Failure


class RootTransaction:
    """`tid` and the request stay over epochs; everything below `begin` belongs to one epoch.

    `offset` is the request's place in its slot's stream. `sequential` is set once its branches collided or it
    needs an exact count or an outside call, and makes its calls run one after the other in call-path order.
    `externals` are the encoded outcomes of outside calls by key, attached when an epoch record resumes it.
    `repeats` are requests with the same idempotency key that wait for this one's reply: (request id, their own
    TID, where they are answered). `remembered` is the reply it repeats itself.
    """

    __slots__ = (
        "collided",
        "count",
        "done",
        "external",
        "externals",
        "failure",
        "idempotency",
        "offset",
        "outstanding",
        "overflow",
        "payload",
        "remembered",
        "repeats",
        "request",
        "result",
        "sequential",
        "slot",
        "tid",
        "timestamp_us",
        "todo",
    )

    def __init__(self, tid: int, slot: int, offset: int, timestamp_us: int, payload: bytes, request: Request) -> None:
        self.tid = tid
        self.slot = slot
        self.offset = offset
        self.timestamp_us = timestamp_us
        self.payload = payload
        self.request = request
        self.sequential = False
        self.externals: dict[bytes, bytes] | None = None
        self.repeats: list[tuple[str, int, int]] = []
        self.idempotency: bytes | None = None
        self.remembered: ReplyRecord | None = None
        self.begin()

    def begin(self) -> None:
        """A new epoch: nothing is known yet."""
        self.outstanding = Outstanding()
        self.count = 0
        self.done = False
        self.collided = False
        self.overflow = False
        self.external = False
        self.failure: Failure | None = None
        self.result: bytes | None = None
        self.todo: list[tuple[bytes, CallSpec]] = []

    def fail(self, failure: Failure) -> None:
        """Keeps the first failure in serial order."""
        if self.failure is None or failure.place < self.failure.place:
            self.failure = failure
