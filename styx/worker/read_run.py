"""One read outside the log, or one part of it: a read-only function run at the end of one epoch, with all that it
calls, in the order of the serial execution.

A chain runs to its end, then its asynchronous calls, each a chain, depth first in call-path order. A call of a slot
that this worker does not have stops the run: it *asks*, and goes on when it is answered. The run can be stopped between
two functions as well, so that a long read holds nobody up. What epochs do meanwhile makes no difference: its views stay
at the end of their epoch, as long as the versions reach it. A read writes nothing, and no replay runs it again.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import astuple

from styx.model.cell import Cell
from styx.model.function_spec import LIST_FUNCTION, FunctionSpec, MadeCall
from styx.model.waiting import ExternalCall, SyncCall
from styx.protocol.frames import Failure
from styx.protocol.reads import PartEnded, PartFailed, PartReturned, ReadPart
from styx.worker.blame import blame_invocation
from styx.worker.epoch_view import Views
from styx.worker.executor import Executor
from styx.worker.footprint import Footprint
from styx.worker.notes import Notes
from styx.worker.outbox import made_call, named, reported
from styx.worker.own_variables import OwnVariables
from styx.worker.serial_run import ASYNCHRONOUS, SYNCHRONOUS, Calls, Ended, Frame, SerialRun, by_path


class ReadRun(SerialRun):
    """The run of `part`, which begins with `call`, on the slots in `views`.

    `_todo` are the calls to run next, each a chain, the first one last. `_returned_here`: what the function on top
    of the stack waits for, or the chain if the stack is empty, has ended. `_asked`: it was asked elsewhere. `lists`: it
    is a part of a listing, which takes as long as many functions.
    """

    def __init__(
        self,
        executor: Executor,
        notes: Notes | None,
        variables: OwnVariables,
        part: ReadPart,
        call: MadeCall,
        views: Views,
    ) -> None:
        super().__init__(executor, notes, variables)
        self.footprint = Footprint(
            self._app,
            self._limits,
            self._n_slots,
            part.number,
            part.timestamp_us,
            part.slot,
            part.slot,
            True,
            True,
            None,
        )
        self.lists = call.function.name == LIST_FUNCTION
        self._called = part.called
        self._part = part
        self._views = views
        self._todo: Calls = [(part.path, call)]
        self._returned_here = False
        self._asked = False
        self._failed: PartFailed | None = None
        self._slot = part.slot
        self._result: bytes | None = None
        self._has_result = False

    def go_on(self, invocations: int) -> PartEnded | ReadPart | None:
        """Runs on for about `invocations` functions, within the context `variables.shared`. Gives the end, or the part
        to ask of another worker before the run goes on; None if there is more to run.
        """
        assert not self._asked, "the run waits for an answer"
        if self._failed is not None:
            return self._ends(Failure(b"", b"", False, *astuple(self._failed)))
        try:
            return self._go_on(self.calls + invocations)
        except Ended as ended:
            return self._ends(ended.failure)
        except BaseException as error:
            blame_invocation(error, self._last, None)
            raise

    def answered(self, answer: PartEnded) -> None:
        """The part that was asked of another worker has ended; `go_on` goes on from there."""
        assert self._asked, "an answer to nothing"
        self._asked = False
        if type(answer) is PartFailed:
            self._failed = answer
            return
        assert type(answer) is PartReturned
        self._value = answer.value
        self._called = answer.called
        self._further.extend([(path, made_call(self._app, spec)) for path, spec in answer.calls])
        self._returned_here = True

    def drop(self) -> None:
        """Ends the run without a result: nobody waits for it, or it cannot go on."""
        self._abandon()

    def _go_on(self, until: int) -> PartEnded | ReadPart | None:
        stack = self._stack
        while True:
            if self._returned_here:
                if stack:
                    self._returned_here = self._resume(stack[-1])
                    continue
                self._returned_here = False
                end = self._chain_ended()
                if end is not None:
                    return end
            if self.calls >= until:
                return None
            if stack:
                frame = stack[-1]
                assert frame.request is not None
                number, call, share = frame.request.number, frame.request.call, SYNCHRONOUS
                path = frame.invocation.step_path(number)
            else:
                path, call = self._todo.pop()
                self._chain_id = path
                share = SYNCHRONOUS if call.synchronous else ASYNCHRONOUS
            if call.slot not in self._views:
                self._asked = True
                return self._ask(path, call)
            self._slot = call.slot
            self._returned_here = self._first(path, call.function, call.key, call.params, share)

    def _chain_ended(self) -> PartReturned | None:
        """Takes the chain's result, if it is the first chain, and its asynchronous calls; gives the end of the run if
        it is due.
        """
        if not self._has_result:
            self._has_result = True
            self._result = self._value
        calls = self._further
        if self._made is not None:
            calls.append((self._made_path, self._made))
            self._made = None
        if self._part.path:
            self._note(None)
            return PartReturned(self._result, self._called, reported(calls))
        if calls:
            calls.sort(key=by_path, reverse=True)
            self._todo.extend(calls)
            calls.clear()
        if self._todo:
            return None
        self._note(None)
        return PartReturned(self._result, self._called)

    def _ask(self, path: bytes, call: MadeCall) -> ReadPart:
        part, spec = self._part, named(call)
        return ReadPart(
            part.number,
            part.timestamp_us,
            part.epoch,
            spec.slot,
            spec.operator,
            spec.function,
            spec.key,
            spec.params,
            path,
            self._called,
            call.synchronous,
        )

    def _cell(self, function: FunctionSpec, key: Any) -> Cell:
        return self._views[self._slot].cell(function.operator, key)

    def _asks(self, frame: Frame, request: SyncCall | ExternalCall) -> None:
        assert type(request) is SyncCall, "a read-only function makes an external call"
        frame.request = request

    def _ends(self, failure: Failure) -> PartFailed:
        self._abandon()
        self._note(failure)
        return PartFailed(failure.code, failure.type, failure.message)

    def _note(self, failure: Failure | None) -> None:
        footprint, notes = self.footprint, self._notes
        if notes is not None and (footprint.lines is not None or footprint.raised is not None):
            notes.at_read_end(footprint, failure, self._part.epoch)
