"""What a function's outside call meets in the execution step: its logged outcome, or the end of the chain until there
is one.

Never makes a call; that is the shell's, once the epoch's record is durable. Paper section 7.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from styx.model.execution import aborted, external_limit_error
from styx.model.waiting import ExternalCall
from styx.native.transaction_limits import TransactionLimits
from styx.protocol.frames import ExternalOutcome, Failure, decode_outcome
from styx.worker.events import RunExternal
from styx.worker.footprint import Footprint
from styx.worker.invocation import Invocation, failure_at
from styx.worker.slot import Slot

EXTERNAL_CODE: Final = "external"
_PENDING: Final = Failure(b"", b"", True, EXTERNAL_CODE, "", "")
"""Ends a chain that needs an outside function first; never reaches a reply."""


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
    """The outside calls that the transactions which leave the epoch wait for, as far as they were made on `slots`."""
    due = []
    for slot in slots:
        for tid in sorted(deferred & slot.footprints.keys()):
            footprint = slot.footprints[tid]
            call = footprint.pending_external
            if call is not None:
                due.append(RunExternal(generation, tid, footprint.root_slot, call.key, call.function, call.args))
    return due
