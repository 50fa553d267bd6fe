"""The specification of one call, as it travels between workers; `styx.model.made_call` is the call with its function
looked up."""

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
