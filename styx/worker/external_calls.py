"""A function's external call. In the execution step the call returns its logged outcome, or, without an outcome, ends
the chain. When the epoch is certain, the intent is logged, then the call is made, then its outcome is logged. Paper
section 7.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from styx.model.execution import aborted, external_limit_error
from styx.model.waiting import ExternalCall
from styx.native.compiled import TransactionLimits
from styx.protocol.frames import ExternalDone, ExternalOutcome, Failure, decode_outcome
from styx.sequencer.epoch_record import ExternalRecord
from styx.worker.events import AppendExternal, RunExternal
from styx.worker.footprint import Footprint
from styx.worker.invocation import Invocation, failure_at
from styx.worker.slot import Slot

EXTERNAL_CODE: Final = "external"
_PENDING: Final = Failure(b"", b"", True, EXTERNAL_CODE, "", "")
"""Ends a chain that needs an external function first; never reaches a reply."""


def known_outcome(footprint: Footprint, request: ExternalCall) -> ExternalOutcome | None:
    """The logged outcome; None ends the chain until there is one."""
    known = None if footprint.externals is None else footprint.externals.get(request.key)
    return None if known is None else decode_outcome(known)


def pending(invocation: Invocation, request: ExternalCall, limits: TransactionLimits) -> Failure:
    """Ends the chain until the call has been made; in sequential mode it will be, since all before it has run.

    State that others keep changing can change a call's arguments at every return, which makes it another call: the
    limit ends that.
    """
    footprint = invocation._footprint
    if footprint.sequential:
        if len(footprint.externals or ()) >= limits.external_calls_max:
            return failure_at(invocation, aborted(external_limit_error(limits)))
        footprint.pending_external = request
    return _PENDING


def due_calls(generation: int, slots: Iterable[Slot], deferred: set[int]) -> list[RunExternal]:
    """The external calls that the transactions which leave the epoch wait for, as far as they were made on `slots`."""
    due = []
    for slot in slots:
        for tid in sorted(deferred & slot.footprints.keys()):
            footprint = slot.footprints[tid]
            call = footprint.pending_external
            if call is not None:
                due.append(RunExternal(generation, tid, footprint.root_slot, call.key, call.function, call.args))
    return due


class ExternalCalls:
    """The calls of one generation that have begun and not ended. `logged` has the outcomes in the log, by key.

    A crash between intent and outcome makes the call again, so a success counts once and an attempt may happen more
    than once: that is what the idempotency key is for.
    """

    def __init__(self, generation: int) -> None:
        self.logged: Mapping[bytes, bytes] = {}
        self._generation = generation
        self._halted: list[RunExternal] = []
        self._begun: dict[bytes, RunExternal] = {}
        self._ended: list[ExternalDone] = []

    @property
    def waiting(self) -> bool:
        """Calls wait for the worker to take up work again."""
        return bool(self._halted)

    def want(self, calls: Iterable[RunExternal], halted: bool) -> list[AppendExternal]:
        """The intents to log. A worker that is `halted` begins nothing: another version of the app may follow, whose
        transactions want their own calls.
        """
        intents = []
        for call in calls:
            outcome = self.logged.get(call.key)
            if outcome is not None:
                self._ended.append(ExternalDone(call.tid, call.root_slot, call.key, outcome))
            elif halted:
                self._halted.append(call)
            elif call.key not in self._begun:
                self._begun[call.key] = call
                intents.append(self._append(call, None))
        return intents

    def go_on(self) -> list[AppendExternal]:
        """The intents of calls that waited for the worker."""
        halted, self._halted = self._halted, []
        return self.want(halted, halted=False)

    def appended(self, key: bytes, outcome: bytes | None) -> list[RunExternal]:
        """An intent is in the log, or the outcome that counts."""
        if outcome is None:
            return [self._begun[key]]
        call = self._begun.pop(key)
        self._ended.append(ExternalDone(call.tid, call.root_slot, key, outcome))
        return []

    def returned(self, key: bytes, outcome: bytes) -> AppendExternal:
        """A call has ended: the record of its outcome, which is told when it is in the log."""
        return self._append(self._begun[key], outcome)

    def ended(self) -> list[ExternalDone]:
        """The calls whose outcomes are in the log, since the last time."""
        ended, self._ended = self._ended, []
        return ended

    def _append(self, call: RunExternal, outcome: bytes | None) -> AppendExternal:
        return AppendExternal(self._generation, call.root_slot, ExternalRecord(call.tid, call.key, outcome))
