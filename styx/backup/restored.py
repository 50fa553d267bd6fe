"""A restored snapshot: the same state, for an empty log. Pure.

Offsets belong to the log of the old cluster; in the new log everything begins at 0. Epochs, generation, version of the
app and unfinished transactions stay, so that a coordinator begins its next generation on the snapshot as after any
restart: `beginning` finds no marker, and takes both numbers from the manifest.

The TID counters go up, beyond every TID that the old cluster can have given since: TIDs determine `ctx.uuid()` and the
idempotency keys of outside calls, so no TID may be given to two transactions. Unfinished transactions keep their TIDs.
An outside call that one of them waits for is made again, with its old key, because its outcome may stand only in the
old log.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from styx.protocol.manifest import Manifest, SlotManifest

COUNTERS_SKIPPED: Final = 2**32
"""At least so many TIDs of each slot are left out, whatever the clock says."""
COUNTERS_PER_SECOND: Final = 10_000
"""More than a slot has in requests, on average over a cluster's life."""


def restored_manifest(manifest: Manifest, now_s: float) -> Manifest:
    """The manifest for an empty log; `now_s` is the time in seconds since 1970."""
    return replace(
        manifest, counter=counter_at(manifest.counter, now_s), slots=[_restored(slot) for slot in manifest.slots]
    )


def counter_at(counter: int, now_s: float) -> int:
    """Higher than any counter of a cluster that goes back to this snapshot, or that was restored from it before now.

    Every restore sets the counters by the clock, and none runs ahead of it until the next one.
    """
    return max(counter + COUNTERS_SKIPPED, int(now_s * COUNTERS_PER_SECOND))


def _restored(slot: SlotManifest) -> SlotManifest:
    pending = [replace(transaction, offset=0) for transaction in slot.part.pending]
    part = replace(slot.part, next_offset=0, epochs_offset=0, replies={}, pending=pending, passed_over=None)
    return replace(slot, part=part)
