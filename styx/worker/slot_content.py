"""A slot's content for a snapshot, taken when an epoch has closed: all that is needed to continue from there.

Taking it empties the slot's delta map. Paper section 7.1.
"""

from __future__ import annotations

from styx.protocol.manifest import PassedOver, PendingTransaction
from styx.worker.events import SlotContent
from styx.worker.slot import Slot


def content_of(
    slot: Slot, whole: bool, next_offset: int, pending: list[PendingTransaction], passed_over: PassedOver | None
) -> SlotContent:
    """With everything (`whole`), or what was changed; what was converted is in no snapshot yet, so all of that."""
    state = slot.state
    delta, whole = state.take_delta(), whole or state.converted
    return SlotContent(slot.index, state.copied() if whole else delta, whole, next_offset, pending, passed_over)
