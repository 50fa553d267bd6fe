"""Partition functions: functions that run once on each partition of an operator, `ctx.call_all(cart, reprice, (7,))`.

Those of the operator `cart` are functions of an internal operator, named `cart*`, whose keys are the partitions'
numbers. So routing, visibility, re-runs and the serial replay treat their calls as they treat all calls. No operator's
name has a `*`, and no client can send a request to `cart*`: what is outside must not depend on how keys are spread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from styx.errors import BadKey, ConfigurationError, UnknownFunction, UnknownOperator
from styx.model.function_reference import FunctionReference
from styx.model.function_spec import NO_HINTS, FunctionSpec, Hints
from styx.model.partition_context import PartitionContext
from styx.model.partitioning import PartitionNumbers
from styx.values.codec import decode_plain, encode_strict, pack_strict, shown

if TYPE_CHECKING:
    from styx.model.app import App
    from styx.model.context import Context
    from styx.model.function_spec import UserFunction
    from styx.model.operator import Operator

PARTITIONS_SUFFIX: Final = "*"
"""Follows the operator's name in the name of the operator whose entities are its partitions."""


class Partitions:
    """The partitions of the operator `owner`, and the functions that run on them. `name` is the internal operator's."""

    __slots__ = ("_by_callable", "functions", "name", "numbers", "owner")

    def __init__(self, owner: str, n_partitions: int | None) -> None:
        self.owner = owner
        self.name = owner + PARTITIONS_SUFFIX
        self.numbers = PartitionNumbers(self.name, n_partitions)
        self.functions: dict[str, FunctionSpec] = {}
        self._by_callable: dict[Any, FunctionSpec] = {}

    def add(self, name: str, func: UserFunction, hints: Hints = NO_HINTS) -> None:
        """Registers a function that has been checked as any other function of an operator."""
        if hints.local:
            raise ConfigurationError(
                f"partition function {name!r} of operator {self.owner!r}: local= is for functions that clients call"
            )
        spec = FunctionSpec(
            self.numbers, name, _on_partition(func), encode_strict, decode_plain, pack_strict, decode_plain, hints
        )
        self.functions[name] = self._by_callable[func] = spec
        self._by_callable[FunctionReference(self.owner, name)] = spec

    def has(self, wanted: Any) -> bool:
        """Whether there is the function, given by name or by itself."""
        try:
            return wanted in self.functions or wanted in self._by_callable
        except TypeError:  # not hashable
            return False

    def function(self, wanted: Any) -> FunctionSpec:
        """The function by name or by itself; raises `UnknownFunction` that lists what there is."""
        if not self.has(wanted):
            known = ", ".join(sorted(self.functions)) or "none"
            name = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", wanted)
            raise UnknownFunction(
                f"operator {self.owner!r} has no partition function {shown(name)}; it has: {known}. "
                "@….register_partition registers one"
            )
        return self.functions.get(wanted) or self._by_callable[wanted]

    def __repr__(self) -> str:
        return f"partitions of {self.owner!r}"


def checked_partition(app: App, named: str, number: Any) -> Operator:
    """The operator whose partition a request names that is for one of the engine's own functions: `named` is such as
    `order*`. Raises `UnknownOperator`; and `BadKey` for a number that no partition can have.
    """
    if not named.endswith(PARTITIONS_SUFFIX):
        raise UnknownOperator(f"app {app.name!r} has no operator {named!r}")
    operator = app.operator(named.removesuffix(PARTITIONS_SUFFIX))
    if type(number) is not int or number < 0:
        raise BadKey(f"a partition of operator {operator.name!r} has a number from 0 on: got {shown(number)}")
    return operator


def _on_partition(func: UserFunction) -> UserFunction:
    """`func` as the engine calls it: with an entity's context."""

    @functools.wraps(func)
    def begin(ctx: Context, *args: Any, **named: Any) -> Any:
        return func(PartitionContext(ctx), *args, **named)

    return begin


def declared_function(function: FunctionSpec) -> Callable[..., Any]:
    """The function of the app that a partition function's specification was made of."""
    wrapped: Callable[..., Any] = function.func.__wrapped__  # type: ignore[attr-defined]  # functools.wraps sets it
    return wrapped
