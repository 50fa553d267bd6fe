"""Steps that emit events, for the programs of `proof.chaos_app`, and random ones.

["emit", n]                     emits n and the register, `n % 3 + 1` times
["emit at", n, key]             emits them at another key
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from styx.model.context import Context
from styx.model.event import Event


class Happened(msgspec.Struct):
    """What a program tells of itself."""

    n: int
    register: int
    again: int = 0


happened: Event[Happened] = Event("happened", Happened)
noticed: Event[list[int]] = Event("noticed", list[int], version=2)
EVENTS: Final[tuple[Event[Any], ...]] = (happened, noticed)

_KEYS: Final = ["k0", "k1", 0, 1, [0, 0], [1, 1]]


def emit(ctx: Context, n: int, register: int) -> None:
    """Emits some events of this entity."""
    for again in range(n % 3 + 1):
        ctx.emit(happened, Happened(n, register, again))


def emit_at(ctx: Context, n: int, register: int, key: Any) -> None:
    """Emits an event at another key."""
    ctx.emit(noticed, [n, register], key=tuple(key) if isinstance(key, list) else key)


def emit_step(rng: Random) -> list[Any]:
    """A step that emits."""
    n = rng.randrange(100)
    return ["emit at", n, rng.choice(_KEYS)] if rng.random() < 0.4 else ["emit", n]
