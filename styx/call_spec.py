"""What one call asks for."""

from __future__ import annotations

import msgspec

from styx.partitioning import Key


class CallSpec(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What one call asks for; two executions made the same call exactly if these are equal."""

    synchronous: bool
    slot: int
    operator: str
    function: str
    key: Key
    params: bytes
