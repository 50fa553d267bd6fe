"""An operator's declaration: the arguments of `Operator(…)` and the registered functions, from which an equal operator
can be built.

An operator itself holds decoders, which cannot be stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from styx.model.operator import Operator


class Declaration(NamedTuple):
    """The arguments of `Operator`, and its registered functions in their order."""

    name: str
    n_partitions: int | None
    key_type: Any
    state_type: Any
    partition_key: Callable[[Any], Any] | None
    functions: list[Callable[..., Any]]
    migrate: Callable[[Any], Any] | None = None


def declaration(operator: Operator) -> Declaration:
    """What `operator` was declared with."""
    key_type = operator.key_type
    return Declaration(
        operator.name,
        operator.n_partitions,
        key_type.scalar or key_type.parts,
        operator.state_type,
        operator.key_space.partition_key,
        [function.func for function in operator.functions.values()],
        None if operator.migration is None else operator.migration.function,
    )


def declare(operator: Operator, declared: Declaration) -> None:
    """Makes an empty operator what `declared` says, with every check; raises `ConfigurationError`."""
    Operator.__init__(
        operator,
        declared.name,
        declared.n_partitions,
        key_type=declared.key_type,
        state_type=declared.state_type,
        partition_key=declared.partition_key,
        migrate=declared.migrate,
    )
    for function in declared.functions:
        operator.register(function)
