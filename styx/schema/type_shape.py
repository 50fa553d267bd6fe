"""The shape of a type as text: which stored values the type reads, and as what. The text is the same in every process.

Two declarations with the same text read the same values alike, as far as their fields say. Their own code (validators,
`__post_init__`) and their names do not count. Pydantic is never imported here.
"""

from __future__ import annotations

import enum
from typing import Any

from msgspec import NODEFAULT, UNSET, inspect

from styx.values.codec import is_scalar
from styx.values.custom_types import is_model, json_schema


def type_shape(declared: Any) -> str:
    """The text; empty for None, which is no type."""
    return "" if declared is None else _Shape().of(inspect.type_info(declared))


class _Shape:
    """Of one type: one that contains itself is told by the number that it had."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def of(self, value: Any) -> str:
        if isinstance(value, inspect.Metadata):
            return self.of(value.type)
        if isinstance(value, inspect.Type | inspect.Field):
            number = self._seen.get(id(value))
            if number is not None:
                return f"#{number}"
            self._seen[id(value)] = len(self._seen)
            parts = (f"{name}={self.of(getattr(value, name))}" for name in value.__struct_fields__)
            return f"{type(value).__name__}({', '.join(parts)})"
        if isinstance(value, tuple):
            return f"[{', '.join(map(self.of, value))}]"
        if isinstance(value, type):
            return _of_class(value)
        if value is NODEFAULT or value is UNSET:
            return "-"
        return repr(value) if is_scalar(value) else type(value).__name__


def _of_class(cls: type) -> str:
    if issubclass(cls, enum.Enum):
        return repr(sorted(repr(member.value) for member in cls))
    return _sorted(json_schema(cls)) if is_model(cls) else ""


def _sorted(schema: Any) -> str:
    """Without any order: a default that is a set has another one in every process."""
    if isinstance(schema, dict):
        return f"{{{', '.join(f'{key!r}: {_sorted(value)}' for key, value in sorted(schema.items()))}}}"
    return f"[{', '.join(sorted(map(_sorted, schema)))}]" if isinstance(schema, list) else repr(schema)
