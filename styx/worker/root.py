"""Transactions at their root slots: the request, the reports of its branches in this epoch, and a worker's accounts of
all transactions that are rooted there.

A root knows when its transaction is done (every ack share is back) and how it ended so far. In sequential mode the
accounts say which chain is next. Paper sections 5.2 and 5.3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from styx.messages import ReplyRecord
from styx.model.app import App
from styx.model.delivery import delivery_name
from styx.model.function_spec import FunctionSpec, MadeCall
from styx.model.limits import Limits
from styx.native.compiled import transaction_limits
from styx.native.interpreted import native, plain_stores
from styx.protocol.frames import Ack, CallSpec, Drop, Failure
from styx.worker.ack_share import Outstanding
from styx.worker.cuts import Stopped
from styx.worker.footprint import Footprint
from styx.worker.invocation import Invocation, Running, abandon
from styx.worker.outbox import Outbox, made_call
from styx.worker.slot import Slot

_EXTERNAL_TOGETHER: Final = Failure(
    b"", b"", False, "aborted", "ExternalCall", "calls that make external calls are made one by one"
)


@native
@plain_stores
class RootTransaction(msgspec.Struct, eq=False, gc=False):
    """A transaction at its root slot. The fields from `outstanding` on belong to one epoch, the others stay.

    `payload` is the request as it stands in the log, at `offset` of its slot's stream. The request runs `function` on
    `key` with `params`; a refused request has no function. `sequential`: the calls run one after the other, in
    call-path order. It is set if branches have collided, or an exact count or an external call is needed. `externals`
    are the encoded outcomes of external calls by key, attached when an epoch record resumes the transaction. `repeats`
    are requests with the same idempotency key that wait for this one's reply: (request id, own TID, where the reply
    goes). `remembered` is set if this request itself repeats another: the first one's reply. `refused` says why the
    transaction cannot run at all, for example because a new version of the app lacks its function. `carried` counts how
    often a lock phase has carried it in this generation. `local`: it runs in phase 3, which only a new request can;
    whatever is carried, or was in a snapshot, is not local. `entry` is the id of the agenda's entry that this delivers,
    of the first one of several; it stands at no place of the log. `outstanding` are the ack shares that are missing
    (None: all). `cut`: the watchdog interrupted one of its functions in this epoch.
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
    carried: int = 0
    local: bool = False
    entry: str | None = None
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
        """Resets the fields of one epoch."""
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

    def needs_external(self) -> None:
        """A function of it has to wait for an external one. Calls that were made together do not: if one of them failed
        later, what the others had called would be called again.
        """
        name = delivery_name(self.request_id)
        if name is not None and name.together > 1:
            self.fail(_EXTERNAL_TOGETHER)
        else:
            self.external = True

    def fail(self, failure: Failure) -> None:
        """Keeps the first failure in serial order."""
        if self.failure is None or failure.place < self.failure.place:
            self.failure = failure


class RootAccounts(ABC):
    """A worker's accounts of one epoch's transactions.

    `roots` are the transactions with their root on this worker, by TID; `open_roots` counts those that are not done.
    `owners` maps every slot to its worker; `slots` are the slots of this worker. `cut` are TIDs of transactions with a
    function that the watchdog interrupted on this worker. `cut_roots` are the roots whose ends are recorded: those with
    such a function on any worker, and those that were dropped before all of their branches had run. `stopped` says
    which of their branches do not run any further.
    """

    def __init__(self, worker: int, app: App, limits: Limits, n_slots: int) -> None:
        self.worker = worker
        self.app = app
        self.limits = transaction_limits(limits)
        self.n_slots = n_slots
        self.owners: dict[int, int] = {}
        self.slots: dict[int, Slot] = {}
        self.roots: dict[int, RootTransaction] = {}
        self.open_roots = 0
        self._in_order: list[RootTransaction] | None = None
        self._locals = 0  # how many of them are of phase 3
        self.outbox = Outbox()
        self.running = Running()
        self.cut: set[int] = set()
        self.cut_roots: list[RootTransaction] = []
        self.stopped = Stopped()
        self._invocations_max = limits.invocations_max

    def roots_in_order(self) -> list[RootTransaction]:
        """The epoch's transactions with their root on this worker, in TID order, without those of phase 3."""
        if self._in_order is None:
            roots = self.roots
            if not self._locals:
                self._in_order = [roots[tid] for tid in sorted(roots)]
            elif self._locals == len(roots):
                self._in_order = []
            else:
                self._in_order = [roots[tid] for tid in sorted(roots) if not roots[tid].local]
        return self._in_order

    @abstractmethod
    def send_call(
        self, footprint: Footprint, path: bytes, made: MadeCall, share: int, count: int, chain: bytes
    ) -> Invocation | None:
        """Sends a call to the worker that owns its slot. Returns the invocation if that is this worker."""

    def _acknowledge(self, footprint: Footprint, ack: Ack) -> None:
        owner = self.owners[footprint.root_slot]
        if owner == self.worker:
            self._credit(ack)
        else:
            self.outbox.acknowledge(owner, ack)

    def _credit(self, ack: Ack) -> None:
        fields: tuple[Any, ...] = astuple(ack)  # at once: compiled code reaches a Struct's fields slowly
        tid, _, share, scale, count, collided, overflow, external, failure, _, cut = fields
        root = self.roots.get(tid)
        if root is None or root.done:
            return
        if collided:
            root.collided = True
        if external:
            root.needs_external()
        if failure is not None:
            root.fail(failure)
        if cut and not root.cut:
            root.cut = True
            self.cut_roots.append(root)
            self.stopped.heard(tid, failure)
        if root.sequential:
            if share:
                root.count = count
                self._next_in_order(root, ack)
            return
        root.count += count
        if overflow:
            # Which of its branches have run by now is chance, and a replay may meet one that does not end. So it is
            # recorded that the transaction leaves the epoch.
            if not root.cut:
                self.cut_roots.append(root)
            self._drop(root)
        elif share and root.give_back(share, scale):
            if root.count > self._invocations_max:
                self._drop(root)
            else:
                self._finish(root)

    def _next_in_order(self, root: RootTransaction, ack: Ack) -> None:
        """Sequential mode: adds the calls that the ended chain has made, and runs the next call in call-path order."""
        todo = root.todo
        if todo is None:
            todo = root.todo = []
        todo.extend(reversed(ack.calls))
        if root.failure is not None or root.external or not todo:
            self._finish(root)
            return
        path, spec = todo.pop()
        footprint = self.slots[root.slot].footprints[root.tid]
        self.send_call(footprint, path, made_call(self.app, spec), 0, root.count, path)

    def _finish(self, root: RootTransaction) -> None:
        root.done = True
        self.open_roots -= 1

    def _drop(self, root: RootTransaction) -> None:
        root.overflow = True
        self._finish(root)
        self._bury(root.tid)
        for peer in set(self.owners.values()) - {self.worker}:
            self.outbox.send(peer, Drop(root.tid))

    def _bury(self, tid: int) -> None:
        """Makes later messages to the transaction void for the rest of this epoch."""
        for slot in self.slots.values():
            footprint = slot.footprints.get(tid)
            if footprint is None:
                footprint = slot.footprints[tid] = Footprint(
                    self.app, self.limits, self.n_slots, tid, 0, slot.index, slot.index, False, False, None
                )
            footprint.dead = True
            for invocation in footprint.invocations:
                abandon(invocation, self.running)
