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
    """The logged outcome of a call; None if there is none yet, which ends the chain."""
    known = None if footprint.externals is None else footprint.externals.get(request.key)
    return None if known is None else decode_outcome(known)


def pending(invocation: Invocation, request: ExternalCall, limits: TransactionLimits) -> Failure:
    """The failure that ends a chain until its external call has been made. In sequential mode the call follows, because
    all functions before it have run.

    Other transactions may change the state that a call's arguments come from, so that each run makes another call.
    The limit on calls ends this.
    """
    footprint = invocation._footprint
    if footprint.sequential:
        if len(footprint.externals or ()) >= limits.external_calls_max:
            return failure_at(invocation, aborted(external_limit_error(limits)))
        footprint.pending_external = request
    return _PENDING


def due_calls(generation: int, slots: Iterable[Slot], deferred: set[int]) -> list[RunExternal]:
    """The external calls that the `deferred` transactions, which leave the epoch, have to wait for, made on `slots`."""
    due = []
    for slot in slots:
        for tid in sorted(deferred & slot.footprints.keys()):
            footprint = slot.footprints[tid]
            call = footprint.pending_external
            if call is not None:
                due.append(RunExternal(generation, tid, footprint.root_slot, call.key, call.function, call.args))
    return due


class ExternalCalls:
    """The external calls of one generation that have begun and not ended. `logged` has the outcomes in the log, by key.

    After a crash between intent and outcome the call is made again. So one outcome counts, but the external service may
    see several attempts; it can recognise them by the idempotency key.
    """

    def __init__(self, generation: int) -> None:
        self.logged: Mapping[bytes, bytes] = {}
        self._generation = generation
        self._halted: list[RunExternal] = []
        self._begun: dict[bytes, RunExternal] = {}
        self._ended: list[ExternalDone] = []

    @property
    def waiting(self) -> bool:
        """Whether calls wait until the worker is no longer halted."""
        return bool(self._halted)

    def want(self, calls: Iterable[RunExternal], halted: bool) -> list[AppendExternal]:
        """Takes wanted calls, and returns the intents to log. A `halted` worker begins none, because another version of
        the app may follow and make other calls.
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
        """The intents of the calls that waited while the worker was halted."""
        halted, self._halted = self._halted, []
        return self.want(halted, halted=False)

    def appended(self, key: bytes, outcome: bytes | None) -> list[RunExternal]:
        """Takes a record that is now in the log: an intent (`outcome` is None), which begins the call, or an
        outcome.
        """
        if outcome is None:
            return [self._begun[key]]
        call = self._begun.pop(key)
        self._ended.append(ExternalDone(call.tid, call.root_slot, key, outcome))
        return []

    def returned(self, key: bytes, outcome: bytes) -> AppendExternal:
        """Takes the outcome of a call, and returns its record. The outcome counts once the record is in the log."""
        return self._append(self._begun[key], outcome)

    def ended(self) -> list[ExternalDone]:
        """The calls whose outcomes have come into the log since the last time."""
        ended, self._ended = self._ended, []
        return ended

    def _append(self, call: RunExternal, outcome: bytes | None) -> AppendExternal:
        return AppendExternal(self._generation, call.root_slot, ExternalRecord(call.tid, call.key, outcome))
