"""The waits of functions for their synchronous calls in the execution step: one call, or calls that run at once.

A function that waits is parked, with its coroutine suspended, until the results of all that it waits for have come.
Paper section 5.2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any

from styx.model.app import App
from styx.model.function_spec import MadeCall
from styx.model.limits import Limits
from styx.model.waiting import ALONE, SyncCall
from styx.native.compiled import calls_more
from styx.protocol.frames import Result
from styx.worker.calls_together import CallsTogether, may_leave_partition, runs_together
from styx.worker.endings import Endings
from styx.worker.invocation import CUT_CODE, Invocation, abandon
from styx.worker.notes import Notes


class Waits(Endings):
    """Parks functions and continues them. `_waiting` are the invocations that wait for another worker, by TID, slot and
    the call's path. `_together` are those that wait for calls which run at once, on whichever worker.
    """

    def __init__(self, worker: int, app: App, limits: Limits, n_slots: int, notes: Notes | None) -> None:
        super().__init__(worker, app, limits, n_slots, notes)
        self._waiting: dict[tuple[int, int, bytes], Invocation] = {}
        self._together: dict[Invocation, CallsTogether] = {}

    @abstractmethod
    def _send(
        self, invocation: Invocation, coroutine: Coroutine[Any, Any, Any], value: bytes | list[bytes] | None
    ) -> None:
        """Runs an invocation on to its next wait, or to its end."""

    def _call(self, invocation: Invocation, request: SyncCall) -> None:
        path, footprint = invocation.step_path(request.number), invocation._footprint
        if request.last != ALONE and not footprint.sequential:
            self._call_together(invocation, request.number, invocation._made[request.number : request.last + 1])
            return
        if self._leaves_partition(invocation):
            return
        footprint.sent += 1 + calls_more(request.call.params, self.limits)
        if footprint.sent >= self._invocations_max and not footprint.sequential:
            abandon(invocation, self.running)
            self._over_limit(invocation)  # as in `_calls_made`: with its other calls here it is over the limit already
            return
        self._ask(invocation, path, request.call)

    def _call_together(self, invocation: Invocation, first: int, calls: Sequence[MadeCall]) -> None:
        """Runs calls at once. The function continues when all of them have ended."""
        footprint = invocation._footprint
        if self._leaves_partition(invocation):
            return
        for call in calls:
            footprint.sent += 1 + calls_more(call.params, self.limits)
        if footprint.sent >= self._invocations_max:
            abandon(invocation, self.running)
            self._over_limit(invocation)
            return
        self._together[invocation] = CallsTogether(first, len(calls), invocation._called)
        for number, call in enumerate(calls, first):
            path = invocation.step_path(number)
            called = self._ask(invocation, path, call)
            if called is not None:
                runs_together(called._footprint, path)

    def _leaves_partition(self, invocation: Invocation) -> bool:
        """Ends an invocation whose synchronous call may reach what functions reach that run at once with it. They are
        of one chain, so that the order of arrival would decide what it reads. The transaction leaves the epoch.
        """
        footprint = invocation._footprint
        if footprint.together is None or footprint.read_only or not may_leave_partition(invocation):
            return False
        abandon(invocation, self.running)
        self._over_limit(invocation)
        return True

    def _ask(self, invocation: Invocation, path: bytes, call: MadeCall) -> Invocation | None:
        """Makes a synchronous call. Returns the invocation if it is on this worker."""
        footprint = invocation._footprint
        called = self.send_call(footprint, path, call, -1, invocation._called, invocation._chain_id)
        if called is not None:
            called._caller = invocation
        else:
            self._waiting[footprint.tid, footprint.slot, path] = invocation
        return called

    def _take_result(self, result: Result) -> None:
        """Takes a result from another worker."""
        waiting = self._waiting.pop((result.tid, result.slot, result.path), None)
        if waiting is not None and waiting._coroutine is not None:
            self._resumptions.append((waiting, result))

    def _resume(self, invocation: Invocation, result: Result | bytes | None) -> None:
        """Continues an invocation with the result of a synchronous call, or the encoded result of an external
        function.
        """
        coroutine = invocation._coroutine
        if coroutine is None or invocation._footprint.dead:
            return
        if isinstance(result, Result):
            failure = result.failure
            if result.collided:
                invocation._footprint.collided = True
            if failure is not None and failure.code == CUT_CODE:
                self.stopped.heard(result.tid, failure)
            together = self._together.get(invocation) if self._together else None
            if together is not None:
                if together.take(result):
                    self._all_ended(invocation, coroutine, together)
                return
            invocation._called = result.count
            if failure is not None:
                self._abandon(invocation, failure)
            else:
                self._go_on(invocation, coroutine, invocation.resumed_with(result))
        else:
            self._go_on(invocation, coroutine, result)

    def _all_ended(self, invocation: Invocation, coroutine: Coroutine[Any, Any, Any], together: CallsTogether) -> None:
        """Continues an invocation when calls that ran at once have ended."""
        del self._together[invocation]
        invocation._called, failure = together.called, together.failure()
        hidden = together.cut and failure is not None and failure.code != CUT_CODE
        if hidden or together.called > self._invocations_max:
            # Behind a failure another function did not end, which is to be recorded. Or one of the functions exceeds
            # the limit, and does not know it. So the transaction leaves the epoch, and comes back in sequential mode.
            abandon(invocation, self.running)
            self._over_limit(invocation)
        elif failure is not None:
            self._abandon(invocation, failure)
        else:
            self._go_on(invocation, coroutine, [invocation.resumed_with(each) for each in together.results()])

    def _go_on(
        self, invocation: Invocation, coroutine: Coroutine[Any, Any, Any], value: bytes | list[bytes] | None
    ) -> None:
        if self.stopped.any and self._left_out(invocation):
            return
        invocation._coroutine = None
        self._send(invocation, coroutine, value)
