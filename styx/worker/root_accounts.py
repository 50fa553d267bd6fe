"""The accounts of transactions rooted at a worker: which ack shares are back, and so which transactions are done.

Takes acks of all workers. In sequential mode it says which chain is next. Paper section 5.3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from msgspec.structs import astuple

from styx.model.app import App
from styx.model.function_spec import MadeCall
from styx.model.limits import Limits
from styx.native.compiled import transaction_limits
from styx.protocol.frames import Ack, Drop
from styx.worker.footprint import Footprint
from styx.worker.invocation import Invocation, abandon
from styx.worker.outbox import Outbox
from styx.worker.outgoing_call import made_call
from styx.worker.root import RootTransaction
from styx.worker.running import Running
from styx.worker.slot import Slot
from styx.worker.stopped import Stopped


class RootAccounts(ABC):
    """`roots` are the epoch's own transactions by TID, `open_roots` how many of them are not done.

    `owners` maps every slot to its worker; `slots` are this worker's. Of this epoch, `cut` are transactions of which
    a function here was ended by the watchdog, `cut_roots` the own ones that heard of such an end anywhere; `stopped`
    says which branches of these run no more.
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
        self.outbox = Outbox()
        self.running = Running()
        self.cut: set[int] = set()
        self.cut_roots: list[RootTransaction] = []
        self.stopped = Stopped()
        self._invocations_max = limits.invocations_max

    def roots_in_order(self) -> list[RootTransaction]:
        """The epoch's own transactions by TID."""
        if self._in_order is None:
            roots = self.roots
            self._in_order = [roots[tid] for tid in sorted(roots)]
        return self._in_order

    @abstractmethod
    def send_call(
        self, footprint: Footprint, path: bytes, made: MadeCall, share: int, count: int, chain: bytes
    ) -> Invocation | None:
        """A call to the worker that owns its slot; the invocation, if that is this worker."""

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
            root.external = True
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
            self._drop(root)
        elif share and root.give_back(share, scale):
            if root.count > self._invocations_max:
                self._drop(root)
            else:
                self._finish(root)

    def _next_in_order(self, root: RootTransaction, ack: Ack) -> None:
        """Sequential mode: the chain that ended may have left calls; the next in call-path order runs now."""
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
        """Whatever still arrives for the transaction in this epoch is void."""
        for slot in self.slots.values():
            footprint = slot.footprints.get(tid)
            if footprint is None:
                footprint = slot.footprints[tid] = Footprint(
                    self.app, self.limits, self.n_slots, tid, 0, slot.index, slot.index, False, None
                )
            footprint.dead = True
            for invocation in footprint.invocations:
                abandon(invocation, self.running)
