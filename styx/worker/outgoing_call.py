"""A call as it travels to the worker that owns its slot, or back to the worker that will send it. Paper section 5.2."""

from __future__ import annotations

from styx.model.app import App
from styx.model.function_spec import MadeCall
from styx.protocol.frames import Call, CallSpec
from styx.worker.footprint import Footprint


def outgoing_call(footprint: Footprint, path: bytes, made: MadeCall, share: int, count: int, chain: bytes) -> Call:
    """The message; `footprint` is the calling transaction's on the caller's slot."""
    return Call(
        footprint.tid,
        footprint.root_slot,
        footprint.slot,
        made.slot,
        made.function.operator,
        made.function.name,
        made.key,
        made.params,
        path,
        chain,
        share,
        count,
        footprint.timestamp_us,
        footprint.sequential,
        footprint.externals,
        footprint.collided,
    )


def reported(calls: list[tuple[bytes, MadeCall]]) -> list[tuple[bytes, CallSpec]]:
    """Calls by their paths, for whoever will send them."""
    return [
        (path, CallSpec(made.synchronous, made.slot, made.function.operator, made.function.name, made.key, made.params))
        for path, made in calls
    ]


def made_call(app: App, spec: CallSpec) -> MadeCall:
    """A call that was reported, to be sent here."""
    function = app.resolve(spec.operator, spec.function)
    return MadeCall(spec.synchronous, spec.slot, function, spec.key, spec.params)
