"""An internal operator: entities of the engine's own, which keep what rows of declared tables imply elsewhere.

Its name has a `*`, as no operator of an app has, so no client and no function of an app can name it. It has no state
but rows. Routing, visibility, re-runs and the serial replay treat calls of its functions as they treat all calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from styx.errors import UnknownFunction
from styx.model.function_spec import FunctionSpec, Hints
from styx.model.partitioning import KeySpace, KeyType
from styx.relational.table import Table
from styx.values.codec import decode_plain, encode_strict, pack_strict, shown

if TYPE_CHECKING:
    from styx.model.function_spec import UserFunction
    from styx.model.partitioning import Key

INTERNAL_MARK: Final = "*"
"""Is in the name of every operator that the engine makes, and in no other one's."""


def is_internal(operator: str) -> bool:
    """Whether the engine has made the operator of this name: an internal one, or the partitions of another."""
    return INTERNAL_MARK in operator


class InternalOperator:
    """Entities with keys of `key_type`, on the slots that a hash of the key gives, or on those of `key_space`.

    Whoever declares what needs it makes it once, and puts it into its `Operator.internal`. Each app of that operator
    has it then. To what asks about state it looks like an `Operator`.
    """

    __slots__ = ("functions", "key_space", "key_type", "n_partitions", "name", "tables")

    migration: Final = None
    typed_state: Final = None

    def __init__(self, name: str, key_type: Any, key_space: KeySpace | None = None) -> None:
        assert is_internal(name), name
        self.name = name
        self.n_partitions: int | None = None
        self.key_type = KeyType(key_type)
        self.key_space = key_space or KeySpace(name, self.key_type, None, None)
        self.functions: dict[str, FunctionSpec] = {}
        self.tables: dict[str, Table] = {}

    def register(self, func: UserFunction, *, read_only: bool = False) -> UserFunction:
        """Registers an engine-made function, which gets a `Context`, under its own name."""
        name = func.__name__
        self.functions[name] = FunctionSpec(
            self.key_space, name, func, encode_strict, decode_plain, pack_strict, decode_plain, Hints(read_only)
        )
        return func

    def table(self, name: str, row_type: Any, *, key: Any, **given: Any) -> Table:
        """Declares a table of the entities' rows; as `Operator.table`."""
        parts = len(self.key_type.parts) or 1
        partition_of = self.key_space.partition_of_flat
        table = Table()
        table.declare(self.name, parts, name, row_type, key=key, partition_of=partition_of, **given)
        self.tables[name] = table
        return table

    def function(self, wanted: Any) -> FunctionSpec:
        """The function by its name; raises `UnknownFunction`."""
        function = self.functions.get(wanted)
        if function is None:
            raise UnknownFunction(f"{self.name!r} has no function {shown(wanted)}; it has: {', '.join(self.functions)}")
        return function

    def check_key(self, key: Any) -> Key:
        """As `Operator.check_key`."""
        checked: Key = self.key_space.check(key)
        return checked

    def partition_of(self, key: Key, n_slots: int) -> int:
        """As `Operator.partition_of`."""
        return self.key_space.partition_of(key, n_slots)

    def slot_of(self, key: Key, n_slots: int) -> int:
        """As `Operator.slot_of`."""
        return self.key_space.slot_of(key, n_slots)

    @property
    def encode_state(self) -> Callable[[Any], bytes]:
        """As an operator without a `state_type`."""
        return encode_strict

    @property
    def decode_state(self) -> Callable[[bytes], Any]:
        """As an operator without a `state_type`."""
        return decode_plain

    def __repr__(self) -> str:
        return f"InternalOperator({self.name!r})"
