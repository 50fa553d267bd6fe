"""The ends of invocations and chains in the execution step: their results, calls, failures and acks.

A chain that succeeds sends its asynchronous calls; a chain that fails returns its share with the failure. Some code of
the user runs here (encoding a result, describing an exception, `finally` blocks), and is announced to the watchdog.
Paper sections 5.2 and 5.3.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from styx.errors import CallLimitExceeded, FunctionTooLong, InTransactionError
from styx.model.app import App
from styx.model.call_limit import call_limit_error
from styx.model.execution import encode_result, failure_of
from styx.model.function_spec import MadeCall
from styx.model.limits import Limits
from styx.native.compiled import calls_more
from styx.protocol.frames import Ack, Failure, Result
from styx.worker.ack_share import split
from styx.worker.calls_together import runs_beside
from styx.worker.external_calls import EXTERNAL_CODE
from styx.worker.invocation import (
    CUT_CODE,
    FIRST_STEP,
    Doomed,
    Invocation,
    Running,
    abandon,
    cut_failure,
    failure_at,
)
from styx.worker.notes import Notes, failure_by
from styx.worker.outbox import reported
from styx.worker.root import RootAccounts


class Endings(RootAccounts):
    """Ends invocations. `_resumptions` are the invocations that can continue, each with the awaited result."""

    def __init__(self, worker: int, app: App, limits: Limits, n_slots: int, notes: Notes | None) -> None:
        super().__init__(worker, app, limits, n_slots)
        self._notes = notes
        self._resumptions: deque[tuple[Invocation, Result | bytes | None]] = deque()

    def _raised(self, invocation: Invocation, error: BaseException) -> None:
        invocation.end()
        if type(error) is CallLimitExceeded and not self._counted_exactly(invocation):
            self._over_limit(invocation)
            return
        if type(error) is not FunctionTooLong or error is not invocation._doom:
            told = described(self.running, self._notes, invocation, error)
            if told is not None:
                invocation._doom = None
                self._failed(invocation, told)
                return
        doom = invocation._doom
        assert isinstance(doom, FunctionTooLong)
        tid, failure = invocation._footprint.tid, cut_failure(invocation, doom)
        self.cut.add(tid)
        self.stopped.ended(tid, failure)
        if self._notes is not None:
            self._notes.raised(invocation, doom, failure._replace(code="aborted"))  # as in the reply
        self._failed(invocation, failure)

    def _counted_exactly(self, invocation: Invocation) -> bool:
        """Whether `_called` is the count of the serial execution. In the root's chain of a read-only transaction it is:
        that chain runs before all others, and never again. While calls of it run at once, none knows of the others.
        """
        footprint = invocation._footprint
        if footprint.sequential:
            return True
        return footprint.read_only and not invocation._chain_id and not runs_beside(invocation)

    def _over_limit(self, invocation: Invocation) -> None:
        # The exact count needs an order: the transaction leaves this epoch and comes back in sequential mode.
        footprint = invocation._footprint
        invocation._doom = None
        self._acknowledge(footprint, Ack(footprint.tid, footprint.root_slot, 0, 0, 0, overflow=True))

    def _returned(self, invocation: Invocation, returned: list[Any]) -> None:
        """Ends an invocation that returned the only item of `returned`. Empties the list while the watchdog looks on,
        because a finalizer of the returned object is the app's code.
        """
        share = invocation._share
        footprint, calls = invocation._footprint, invocation._calls
        wanted = share < 0 or not invocation._path
        result: bytes | None = None
        if wanted or returned[0] is not None:
            running = self.running
            try:
                running.invocation = invocation
                if wanted:
                    result = invocation._result = encode_result(invocation._spec, returned[0], self.limits)
                returned[0] = None
                running.invocation = None
                if invocation._doom is not None:
                    raise Doomed
                if share < 0 and result is not None and len(result) >= self.limits.call_bytes:
                    self._count_result(invocation, result)
            except BaseException as error:
                running.invocation = None
                if invocation._doom is not None:
                    try:
                        running.withdraw()
                    except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                        pass
                elif not isinstance(error, InTransactionError):
                    raise
                failure = failure_of(invocation, error)
                returned[0] = None
                self._raised(invocation, failure)
                del failure  # it refers to this frame, and the circle would keep the function's arguments in memory
                return
        if wanted:
            if share < 0:
                self._answer(invocation, result, invocation.asynchronous_calls(), None)
                return
            self.roots[footprint.tid].result = result
        if calls is None and invocation._below is None:
            self._branch_ended(invocation)
        else:
            self._calls_made(invocation)

    def _calls_made(self, invocation: Invocation) -> None:
        """Makes the asynchronous calls of a chain that has succeeded."""
        footprint, count, own = invocation._footprint, invocation._called, invocation._calls
        if (
            own is not None
            and len(own) == 1
            and invocation._below is None
            and not (own[0].synchronous or footprint.sequential)
        ):
            footprint.sent += 1 + calls_more(own[0].params, self.limits)
            if footprint.sent < self._invocations_max:
                # The usual number, without lists.
                path = invocation._path + FIRST_STEP
                self.send_call(footprint, path, own[0], invocation._share, count, path)
            else:
                self._over_limit(invocation)
            return
        calls = invocation.asynchronous_calls()
        if not calls:
            self._branch_ended(invocation)
            return
        if footprint.sequential:
            self._chain_ended(invocation, calls, None)
            return
        for _, made in calls:
            footprint.sent += 1 + calls_more(made.params, self.limits)
        if footprint.sent >= self._invocations_max:
            # Each of the calls would run, so the transaction is over its limit already. Nothing is queued.
            self._over_limit(invocation)
        else:
            for share, (path, made) in zip(split(invocation._share, len(calls)), calls, strict=True):
                # The chain's count so far travels with one of the calls only, so that the root's sum is exact.
                self.send_call(footprint, path, made, share, count, path)
                count = 0

    def _count_result(self, invocation: Invocation, result: bytes) -> None:
        """Counts a large result as calls. Raises `CallLimitExceeded`."""
        footprint, more = invocation._footprint, calls_more(result, self.limits)
        invocation._called += more
        footprint.sent += more
        sent = 0 if footprint.sequential else footprint.sent
        if invocation._called > self._invocations_max or sent >= self._invocations_max:
            raise call_limit_error(self.limits, result)

    def _failed(self, invocation: Invocation, failure: Failure) -> None:
        invocation.end()
        if invocation.synchronous:
            self._answer(invocation, None, [], failure)
        else:
            self._chain_ended(invocation, [], failure)

    def _left_out(self, invocation: Invocation) -> bool:
        """Ends this branch if the watchdog has interrupted another branch that precedes it. Returns whether it did."""
        footprint = invocation._footprint
        first = self.stopped.first(footprint.tid)
        if first is None:
            return False
        failure = failure_at(invocation, (CUT_CODE, first.type, first.message))
        if failure.place < first.place:
            if not self.stopped.given_up(footprint.tid):
                return False
            footprint.collided = True  # sequential mode finds out what the branch would have done
        self._abandon(invocation, failure)
        return True

    def _abandon(self, invocation: Invocation, failure: Failure) -> None:
        """Ends an invocation that has not ended; if it is suspended, its `finally` blocks run, on a closed context."""
        abandon(invocation, self.running)
        self._failed(invocation, failure)

    def _answer(
        self,
        invocation: Invocation,
        value: bytes | None,
        calls: list[tuple[bytes, MadeCall]],
        failure: Failure | None,
    ) -> None:
        footprint = invocation._footprint
        result = Result(
            footprint.tid,
            invocation._from_slot,
            invocation.path,
            value,
            invocation._called,
            reported(calls),
            footprint.collided,
            failure,
        )
        if invocation._caller is not None:
            self._resumptions.append((invocation._caller, result))
        else:
            self.outbox.send(self.owners[invocation._from_slot], result)

    def _chain_ended(
        self, invocation: Invocation, calls: list[tuple[bytes, MadeCall]], failure: Failure | None
    ) -> None:
        footprint = invocation._footprint
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
                reported(calls),
                failure is not None and failure.code == CUT_CODE,
            ),
        )

    def _branch_ended(self, invocation: Invocation) -> None:
        """Ends a chain that has succeeded and makes no further call."""
        footprint = invocation._footprint
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
        # The usual end, on the root's own worker: the effect of an ack, without an ack.
        root.count += invocation._called
        share = invocation._share
        if root.done or ((share or root.outstanding is not None) and not root.give_back(1, share)):
            return
        if root.count > self._invocations_max:
            self._drop(root)
        else:
            root.done = True
            self.open_roots -= 1


def described(running: Running, notes: Notes | None, invocation: Invocation, error: BaseException) -> Failure | None:
    """Turns an exception into a failure; None if the watchdog interrupted the exception's own code meanwhile."""
    doom = invocation._doom
    failure: Failure | None = None
    try:
        running.invocation = invocation
        failure = failure_by(notes, invocation, error)
        running.invocation = None
    except BaseException:  # noqa: BLE001 - an interruption: describing an error raises nothing
        running.invocation = None
    if invocation._doom is doom:
        return failure
    try:
        running.withdraw()
    except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
        pass
    return None
