"""The steps of a worker's protocol."""

from __future__ import annotations

from enum import Enum


class Step(Enum):
    """Where the worker is; each in one sentence."""

    LOADING = "it has no state: a generation has ended and the next one's is being loaded"
    LOADED = "it has its state and waits until all workers have theirs"
    IDLE = "no epoch is open"
    EXECUTING = "functions run, or others' do; barrier 1 is ahead or reported"
    VALIDATING = "conflicts are found, barrier 2 is ahead; they are reported when the epoch record is durable"
    LOCKING = "a lock-phase round runs or is reported"
    HOLDING = "no epoch begins until the snapshot that is being stored has ended"
