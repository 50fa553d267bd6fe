"""The execution step: drives users' coroutines by hand, without a task or future for any of them.

Runs root functions and calls on the state as the epoch found it, parks a function that waits for a synchronous
result under its call path, hands out and returns ack shares. Never commits, never talks to the network (messages
go to the outbox), never looks at a clock: `run` takes a number of invocations. Paper sections 5.2 and 5.3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from typing import Any

from styx.app import App
from styx.bulk_load import LOAD
from styx.context import CallSpec, ExternalCall, SyncCall
from styx.errors import CallLimitExceeded, InTransactionError
from styx.execution import (
    aborted,
    encode_result,
    external_limit_error,
    failure_of,
    foreign_await_error,
    rejection,
    start,
)
from styx.limits import Limits
from styx.partitioning import Key
from styx.worker.ack_share import split
from styx.worker.footprint import SEQUENTIAL_CHAIN, Footprint
from styx.worker.invocation import Invocation, abandon, external_failure, failure_at
from styx.worker.messages import Ack, Call, Drop, ExternalOutcome, Failure, Result, decode_outcome
from styx.worker.root import RootTransaction
from styx.worker.root_accounts import RootAccounts

_REQUESTS = (SyncCall, ExternalCall)
EXTERNAL_CODE = "external"
EXTERNAL_PENDING = Failure(b"", b"", True, EXTERNAL_CODE, "", "")
"""Ends a chain that needs an outside function first; never reaches a reply."""


class Executor(RootAccounts):
    """One epoch's first execution on one worker. `owners` maps every slot to its worker.

    `invocation` is the kind of context that functions get, which a shell may replace between epochs by one that
    measures.
    """

    def __init__(self, worker: int, app: App, limits: Limits, n_slots: int) -> None:
        super().__init__(worker, app, limits, n_slots)
        self._operators = dict(app.operators)
        self._operations_max = limits.operations_max
        self.invocation: type[Invocation] = Invocation
        self._ready: deque[Invocation] = deque()
        self._resumptions: deque[tuple[Invocation, Result | bytes | None]] = deque()

    # An epoch's life ---------------------------------------------------------------------------------------

    def begin(self, roots: list[RootTransaction]) -> None:
        """Starts the epoch's own transactions; those already failed (a request that cannot run) are done."""
        assert self.idle, "an epoch began while the last one's work was not done"
        assert self.open_roots == 0, "an epoch began while the last one's transactions were open"
        self.roots = {root.tid: root for root in roots}
        for root in roots:
            if root.done:
                continue
            self.open_roots += 1
            request = root.request
            key = tuple(request.key) if isinstance(request.key, list) else request.key
            slot = root.slot
            footprint = self.slots[slot].footprints[root.tid] = Footprint(
                self.app,
                self.limits,
                self.n_slots,
                root.tid,
                root.timestamp_us,
                slot,
                slot,
                root.sequential,
                root.externals,
            )
            self._enqueue(footprint, request.operator, request.function, key, b"", b"", request.params, 0, 1, slot)

    def end(self) -> None:
        """Forgets the epoch: closes what dropped transactions left waiting."""
        for slot in self.slots.values():
            for footprint in slot.footprints.values():
                for invocation in footprint.invocations:
                    if invocation._coroutine is not None:
                        abandon(invocation)
                # They refer back to the footprint: without the circle everything is freed here and now, and the
                # garbage collector has nothing to find.
                footprint.invocations.clear()
                footprint.waiting = None
            slot.forget_epoch()
        self._ready.clear()
        self._resumptions.clear()
        self.roots = {}
        self.open_roots = 0

    @property
    def idle(self) -> bool:
        """Nothing can run until a message arrives."""
        return not self._ready and not self._resumptions

    def run(self, invocations: int) -> None:
        """Runs at most so many invocations (or continuations of them)."""
        ready, resumptions = self._ready, self._resumptions
        while invocations > 0:
            invocations -= 1
            if resumptions:
                waiting, result = resumptions.popleft()
                self._resume(waiting, result)
            elif ready:
                self._start(ready.popleft())
            else:
                return

    def deliver(self, message: Call | Result | Ack | Drop) -> None:
        """Takes one message of this epoch from a peer."""
        if type(message) is Call:
            self._take_call(message)
        elif type(message) is Ack:
            self._credit(message)
        elif type(message) is Result:
            footprint = self.slots[message.slot].footprints.get(message.tid)
            if footprint is not None and footprint.waiting is not None:
                waiting = footprint.waiting.pop(message.path[:-2], None)
                if waiting is not None and waiting._coroutine is not None:
                    self._resumptions.append((waiting, message))
        elif type(message) is Drop:
            self._bury(message.tid)

    # Invocations -------------------------------------------------------------------------------------------

    def footprint(
        self,
        tid: int,
        slot_index: int,
        root_slot: int,
        timestamp_us: int,
        sequential: bool,
        externals: dict[bytes, bytes] | None,
    ) -> Footprint:
        """The transaction's footprint on a slot of this worker, made at its first call there."""
        slot = self.slots[slot_index]
        footprint = slot.footprints.get(tid)
        if footprint is None:
            footprint = slot.footprints[tid] = Footprint(
                self.app, self.limits, self.n_slots, tid, timestamp_us, slot_index, root_slot, sequential, externals
            )
        return footprint

    def _take_call(self, call: Call) -> None:
        footprint = self.footprint(
            call.tid, call.slot, call.root_slot, call.timestamp_us, call.sequential, call.externals
        )
        if footprint.dead:
            return
        footprint.collided |= call.collided
        key = tuple(call.key) if isinstance(call.key, list) else call.key  # msgpack has arrays only
        self._enqueue(
            footprint,
            call.operator,
            call.function,
            key,
            call.path,
            call.chain,
            call.params,
            call.share,
            call.count,
            call.from_slot,
        )

    def _enqueue(
        self,
        footprint: Footprint,
        operator_name: str,
        function: str,
        key: Key,
        path: bytes,
        chain: bytes,
        params: bytes,
        share: int,
        count: int,
        from_slot: int,
    ) -> Invocation:
        """An invocation on this worker, to be started when its turn comes."""
        operator = self._operators[operator_name]
        slot = self.slots[footprint.slot]
        spec = operator.functions.get(function)
        if spec is None:
            spec = LOAD  # a call to anything else would have been refused
            slot.loads.append(footprint)
        invocation = self.invocation(
            operator,
            key,
            footprint,
            spec,
            slot.cell(footprint, operator_name, key),
            path,
            SEQUENTIAL_CHAIN if footprint.sequential else chain,
            self._operations_max,
            chain,
            params,
            share,
            count,
            from_slot,
        )
        footprint.invocations.append(invocation)
        self._ready.append(invocation)
        return invocation

    def _start(self, invocation: Invocation) -> None:
        footprint = invocation._env
        if footprint.dead:
            return
        try:
            coroutine = invocation._coroutine = start(invocation._spec, invocation, invocation._params)
        except InTransactionError as error:
            self._failed(invocation, failure_at(invocation, aborted(error) if invocation._path else rejection(error)))
            return
        self._send(invocation, coroutine, None)

    def _over_limit(self, invocation: Invocation) -> None:
        # The exact count needs an order: the transaction leaves this epoch and comes back in sequential mode.
        footprint = invocation._env
        self._acknowledge(footprint, Ack(footprint.tid, footprint.root_slot, 0, 0, 0, overflow=True))

    def _send(self, invocation: Invocation, coroutine: Coroutine[Any, Any, Any], value: bytes | None) -> None:
        """Runs an invocation to its next wait, or to its end."""
        try:
            request = coroutine.send(value)
        except StopIteration as stop:
            invocation._closed = True  # what `end` does, without the call
            invocation._left = 0
            invocation._coroutine = None
            if invocation._doom is None:
                self._returned(invocation, stop.value)
            else:
                self._raised(invocation, invocation._doom)
        except BaseException as error:  # noqa: BLE001 - the user's function: whatever it raises is its abort
            self._raised(invocation, failure_of(invocation, error) or error)
        else:
            self._waits(invocation, coroutine, request)

    def _waits(self, invocation: Invocation, coroutine: Coroutine[Any, Any, Any], request: Any) -> None:
        # By type first: a foreign object's attributes are code, and it would run outside of every guard.
        own = type(request) in _REQUESTS and request.context is invocation and invocation._doom is None
        if not own:
            foreign = invocation._doom or foreign_await_error(coroutine, request)
            abandon(invocation)
            self._raised(invocation, foreign)
        elif type(request) is SyncCall:
            self._call(invocation, request)
        else:
            outcome = self._external_outcome(invocation._env, request)
            if outcome is None:
                self._abandon(invocation, self._external_pending(invocation, request))
            elif outcome.error is not None:
                self._abandon(invocation, external_failure(invocation, outcome.error))
            else:
                # Not from here, which would nest: a function may make many such calls.
                self._resumptions.append((invocation, outcome.value))

    def _call(self, invocation: Invocation, request: SyncCall) -> None:
        path = invocation.step_path(request.number)
        called = self.send_call(invocation._env, path, request.spec, -1, invocation._called, invocation._chain_id)
        if called is not None:
            called._caller = invocation
        elif invocation._env.waiting is None:
            invocation._env.waiting = {invocation._path: invocation}
        else:
            invocation._env.waiting[invocation._path] = invocation

    def _raised(self, invocation: Invocation, error: BaseException) -> None:
        invocation.end()
        if type(error) is CallLimitExceeded and not invocation._env.sequential:
            self._over_limit(invocation)
        else:
            self._failed(invocation, failure_at(invocation, aborted(error)))

    def _resume(self, invocation: Invocation, result: Result | bytes | None) -> None:
        """With a synchronous callee's result, or an outside function's, encoded."""
        coroutine = invocation._coroutine
        if coroutine is None or invocation._env.dead:
            return
        if not isinstance(result, Result):
            self._send(invocation, coroutine, result)
            return
        invocation._called = result.count
        if result.collided:
            invocation._env.collided = True
        if result.failure is not None:
            self._abandon(invocation, result.failure)
            return
        assert result.value is not None
        invocation.resumed_with(result)
        self._send(invocation, coroutine, result.value)

    def send_call(
        self,
        footprint: Footprint,
        path: bytes,
        spec: CallSpec,
        share: int,
        count: int,
        chain: bytes,
    ) -> Invocation | None:
        """A call to the worker that owns its slot; the invocation, if that is this worker."""
        owner = self.owners[spec.slot]
        if owner != self.worker:
            self._send_away(owner, footprint, path, spec, share, count, chain)
            return None
        here = footprint
        if spec.slot != footprint.slot:
            here = self.footprint(
                footprint.tid,
                spec.slot,
                footprint.root_slot,
                footprint.timestamp_us,
                footprint.sequential,
                footprint.externals,
            )
            here.collided |= footprint.collided
        return self._enqueue(
            here, spec.operator, spec.function, spec.key, path, chain, spec.params, share, count, footprint.slot
        )

    def _send_away(
        self, owner: int, footprint: Footprint, path: bytes, spec: CallSpec, share: int, count: int, chain: bytes
    ) -> None:
        call = Call(
            footprint.tid,
            footprint.root_slot,
            footprint.slot,
            spec.slot,
            spec.operator,
            spec.function,
            spec.key,
            spec.params,
            path,
            chain,
            share,
            count,
            footprint.timestamp_us,
            footprint.sequential,
            footprint.externals,
            footprint.collided,
        )
        self.outbox.send(owner, call)

    @staticmethod
    def _external_outcome(footprint: Footprint, request: ExternalCall) -> ExternalOutcome | None:
        """The logged outcome; None ends the chain until there is one."""
        known = None if footprint.externals is None else footprint.externals.get(request.key)
        return None if known is None else decode_outcome(known)

    def _external_pending(self, invocation: Invocation, request: ExternalCall) -> Failure:
        """Ends the chain until the call has been made; in sequential mode it will be, since all before it has run.

        State that others keep changing can change a call's arguments at every return, which makes it another call: the
        limit ends that.
        """
        footprint = invocation._env
        if footprint.sequential:
            if len(footprint.externals or ()) >= self.limits.external_calls_max:
                return failure_at(invocation, aborted(external_limit_error(self.limits)))
            footprint.pending_external = request
        return EXTERNAL_PENDING

    # Ends of invocations and chains ------------------------------------------------------------------------

    def _returned(self, invocation: Invocation, value: Any) -> None:
        share = invocation._share
        if share < 0 or not invocation._path:
            try:
                invocation._result = encode_result(invocation._spec, value, self.limits)
            except InTransactionError as error:
                self._failed(invocation, failure_at(invocation, aborted(error)))
                return
            if not invocation._path:
                self.roots[invocation._env.tid].result = invocation._result
        if share < 0:
            self._answer(invocation, invocation._result, invocation.asynchronous_calls(), None)
            return
        if not invocation._calls and invocation._below is None:
            self._branch_ended(invocation)
            return
        calls = invocation.asynchronous_calls()
        if not calls:
            self._branch_ended(invocation)
        elif invocation._env.sequential:
            self._chain_ended(invocation, calls, None)
        else:
            self._send_calls(invocation, calls)

    def _failed(self, invocation: Invocation, failure: Failure) -> None:
        invocation.end()
        invocation._failed = True
        if invocation.synchronous:
            self._answer(invocation, None, [], failure)
        else:
            self._chain_ended(invocation, [], failure)

    def _abandon(self, invocation: Invocation, failure: Failure) -> None:
        """Ends an invocation that is still suspended; its `finally` blocks run, on a closed context."""
        abandon(invocation)
        self._failed(invocation, failure)

    def _answer(
        self,
        invocation: Invocation,
        value: bytes | None,
        calls: list[tuple[bytes, CallSpec]],
        failure: Failure | None,
    ) -> None:
        footprint = invocation._env
        result = Result(
            footprint.tid,
            invocation._from_slot,
            invocation.path,
            value,
            invocation._called,
            calls,
            footprint.collided,
            failure,
        )
        if invocation._caller is not None:
            self._resumptions.append((invocation._caller, result))
        else:
            self.outbox.send(self.owners[invocation._from_slot], result)

    def _chain_ended(
        self, invocation: Invocation, calls: list[tuple[bytes, CallSpec]], failure: Failure | None
    ) -> None:
        footprint = invocation._env
        external = failure is not None and failure.code == EXTERNAL_CODE
        self._acknowledge(
            footprint,
            Ack(
                footprint.tid,
                footprint.root_slot,
                1,
                invocation._share,
                invocation._called,
                footprint.collided,
                False,
                external,
                None if external else failure,
                calls,
            ),
        )

    def _send_calls(self, invocation: Invocation, calls: list[tuple[bytes, CallSpec]]) -> None:
        footprint, count = invocation._env, invocation._called
        footprint.sent += len(calls)
        if footprint.sent >= self._invocations_max:
            # Each of them would run, so it is over its limit already: better told than queued.
            self._over_limit(invocation)
            return
        if len(calls) == 1:
            path, spec = calls[0]
            self.send_call(footprint, path, spec, invocation._share, count, path)
            return
        for share, (path, spec) in zip(split(invocation._share, len(calls)), calls, strict=True):
            # The way's count so far travels with one of the calls only, so that the root's sum is exact.
            self.send_call(footprint, path, spec, share, count, path)
            count = 0

    def _branch_ended(self, invocation: Invocation) -> None:
        """A chain has ended well and calls nothing more."""
        footprint = invocation._env
        root = self.roots.get(footprint.tid)
        if root is None or footprint.sequential or footprint.collided:
            self._acknowledge(
                footprint,
                Ack(
                    footprint.tid,
                    footprint.root_slot,
                    1,
                    invocation._share,
                    invocation._called,
                    footprint.collided,
                ),
            )
            return
        # The usual end, on the root's own worker: what an ack would do, without making one.
        root.count += invocation._called
        share = invocation._share
        if root.done or ((share or root.outstanding is not None) and not root.give_back(1, share)):
            return
        if root.count > self._invocations_max:
            self._drop(root)
        else:
            root.done = True
            self.open_roots -= 1
