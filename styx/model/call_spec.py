"""What one call asks for, as workers tell each other of it; `styx.model.made_call` is what they make of it."""

from __future__ import annotations

import msgspec

from styx.model.partitioning import Key


class CallSpec(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What one call asks for, by names."""

    synchronous: bool
    slot: int
    operator: str
    function: str
    key: Key
    params: bytes
