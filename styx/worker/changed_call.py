"""The call that changed when a transaction was run again in the lock phase, for people who want to know why it was
carried. It is looked for only then. Paper section 6.3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from styx.model.context import PATH_STEP_BYTES
from styx.worker.footprint import Footprint

Invoked = tuple[str, Any, str]
"""(operator, key, function) of an invocation."""


class ChangedCall(NamedTuple):
    """`caller` made the call of `callee` when it ran first, and another one or none when it ran again. Without a
    `callee`, the caller's result changed, or it makes more calls than before.
    """

    caller: Invoked
    callee: Invoked | None


def changed_call(footprint: Footprint, position: bytes) -> ChangedCall | None:
    """The call at whose place (`Failure.position`) a re-run on one slot deviated; None if it is no cached call."""
    cached = {invocation._path: invocation for invocation in footprint.invocations}
    place = position
    while place and place[:-PATH_STEP_BYTES] not in cached:
        place = place[:-PATH_STEP_BYTES]  # made by a function that did not run at first
    if not place:
        return None
    caller = cached[place[:-PATH_STEP_BYTES]]
    index = int.from_bytes(place[-PATH_STEP_BYTES:], "big")
    calls = caller._made
    callee = None
    if index < len(calls):
        made = calls[index]
        callee = (made.function.operator, made.key, made.function.name)
    return ChangedCall((caller._spec.operator, caller._key, caller._spec.name), callee)
