"""A call that a function has made, with the called function looked up; `styx.model.call_spec` is the form that
travels."""

from __future__ import annotations

from typing import Any

import msgspec

from styx.model.function_spec import FunctionSpec


class MadeCall(msgspec.Struct, eq=False, gc=False):
    """`key` is checked, and lives on `slot`. Two executions of a function made the same call if these are equal."""

    synchronous: bool
    slot: int
    function: FunctionSpec
    key: Any
    params: bytes

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MadeCall)
            and self.function is other.function
            and self.slot == other.slot
            and self.params == other.params
            and self.synchronous == other.synchronous
            and bool(self.key == other.key)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct's own one compares identity, whatever `__eq__` does

    def __hash__(self) -> int:
        return hash((self.slot, self.params))
