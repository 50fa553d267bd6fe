"""A call as it travels to the worker that owns its slot. A record only; never sends it. Paper section 5.2."""

from __future__ import annotations

from styx.call_spec import CallSpec
from styx.worker.footprint import Footprint
from styx.worker.messages import Call


def outgoing_call(footprint: Footprint, path: bytes, spec: CallSpec, share: int, count: int, chain: bytes) -> Call:
    """The message; `footprint` is the calling transaction's on the caller's slot."""
    return Call(
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
