"""Transaction ids without coordination: every slot's sequencer owns one residue class.

`tid = sid + lc * n_seq` with sid in 1..n_seq (Mencius). At each epoch's end every counter moves to the highest
one, so that every later TID is greater than every earlier one. Paper section 5.1.
"""

from __future__ import annotations

from styx.model.limits import TID_MAX


def tid(slot: int, counter: int, n_slots: int) -> int:
    """The TID of a slot's request number `counter`; slots count from 0, TIDs from 1."""
    value = slot + 1 + counter * n_slots
    assert 0 < value <= TID_MAX, "transaction ids are exhausted"
    return value


def slot_of(tid: int, n_slots: int) -> int:
    """The slot whose sequencer gave `tid`."""
    return (tid - 1) % n_slots
