"""Patience: how long processes wait for a function of the app. All these times follow from the deployment's `Limits`.

A function may run for its limit, in a replay for longer, and in C code, where nothing can interrupt it, for longer
still. Code that waits for an engine which a function holds up takes its time limits from here. So a function within its
limits is never taken for a dead worker, and a function that is stuck in C code counts as one after a known time.
"""

from __future__ import annotations

from typing import Final

from styx.model.limits import Limits

REPLAY_PATIENCE: Final = 3
"""How many times longer a function may run in the replay of what may not have been decided before: it may have ended in
time when it ran first, on a machine that was less busy. No reply stands, so either outcome is right.
"""
CLOSED_PATIENCE: Final = 30
"""The same in the replay of what is known to have been decided: then the function did end, or its end is recorded, and
no other outcome is right. If it does not end now, the engine fails.
"""
STUCK_SECONDS_MAX: Final = 300.0
"""A function that is over its limit is in C code, which nobody can end: so much longer its worker counts as alive."""
PEER_SECONDS: Final = 30.0
"""So much longer workers keep their connections to it: it is the coordinator that says who is dead."""
END_SECONDS: Final = 2.0
"""What still runs so long after it should have ended, in a process that is told to end, does not hold up that end."""

STOP_SECONDS: Final = 30.0
"""What a process of a cluster does at its end besides: a gateway drains, a coordinator awaits its last snapshot."""


def alive_seconds_max(limit_seconds: float) -> float:
    """How long a function may hold up its worker, which counts as alive; `limit_seconds` is what it may run for."""
    return limit_seconds + STUCK_SECONDS_MAX


def peer_silence_seconds(limits: Limits) -> float:
    """After how long a silent peer is lost: longer than any function is waited for."""
    return alive_seconds_max(limits.function_seconds_max * CLOSED_PATIENCE) + PEER_SECONDS


def end_seconds_max(limits: Limits) -> float:
    """How long one pass of the engine may go on in a process that is told to end: a function may use its limit, but in
    a replay no more than that, since the next start replays it anyway.
    """
    return limits.function_seconds_max + END_SECONDS


def stop_seconds_max(limits: Limits) -> float:
    """How long whoever stops a process of a cluster waits for its end before killing it."""
    return end_seconds_max(limits) + STOP_SECONDS
