"""A transaction at its root slot: the request, and the reports of its branches in this epoch.

It knows when the transaction is done (every ack share is back) and how it ended so far. Paper sections 5.2 and 5.3.
"""

from __future__ import annotations

from typing import Any

import msgspec

from styx.messages import ReplyRecord
from styx.model.function_spec import FunctionSpec
from styx.native.interpreted import native, plain_stores
from styx.protocol.frames import CallSpec, Failure
from styx.worker.ack_share import Outstanding


@native
@plain_stores
class RootTransaction(msgspec.Struct, eq=False, gc=False):
    """`tid` and what was asked for stay over epochs; `outstanding`, the ack shares that are missing (None: all),
    and what follows it belong to one epoch.

    `payload` is the request as it stands in the log, at `offset` of its slot's stream; `function`, `key` and `params`
    are what it asks to run, no function if it is refused. `sequential` is set once its branches collided or it needs
    an exact count or an outside call, and makes its calls run one after the other in call-path order.
    `externals` are the encoded outcomes of outside calls by key, attached when an epoch record resumes it.
    `cut`: a function of it was ended by the watchdog in this epoch.
    `repeats` are requests with the same idempotency key that wait for this one's reply: (request id, their own
    TID, where they are answered). `remembered` is the reply it repeats itself. `refused`: why it cannot run at all, as
    a new version of the app can decide of a transaction that a snapshot held.
    """

    tid: int
    slot: int
    offset: int
    timestamp_us: int
    payload: bytes
    request_id: str
    reply_to: int
    function: FunctionSpec | None
    key: Any
    params: bytes
    sequential: bool = False
    externals: dict[bytes, bytes] | None = None
    repeats: list[tuple[str, int, int]] | None = None
    idempotency: bytes | None = None
    remembered: ReplyRecord | None = None
    refused: Failure | None = None
    outstanding: Outstanding | None = None
    count: int = 0
    done: bool = False
    collided: bool = False
    overflow: bool = False
    external: bool = False
    cut: bool = False
    failure: Failure | None = None
    result: bytes | None = None
    todo: list[tuple[bytes, CallSpec]] | None = None

    def begin(self) -> None:
        """A new epoch: nothing is known yet."""
        self.outstanding = None
        self.count = 0
        self.done = self.refused is not None
        self.collided = False
        self.overflow = False
        self.external = False
        self.cut = False
        self.failure = self.refused
        self.result = None
        self.todo = None

    def give_back(self, share: int, scale: int) -> bool:
        """Takes the ack share `share` / 2^`scale` back; True when nothing is missing any more."""
        outstanding = self.outstanding
        if outstanding is None:
            if share == 1 and scale == 0:
                return True
            outstanding = self.outstanding = Outstanding()
        return outstanding.give_back(share, scale)

    def fail(self, failure: Failure) -> None:
        """Keeps the first failure in serial order."""
        if self.failure is None or failure.place < self.failure.place:
            self.failure = failure
