"""The fields of a stored value that its type does not have, and that the next `put` would therefore lose.

They are found by comparing the plain form with the typed value, as far as the type's own fields tell.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, Final

import msgspec

_TYPES_KEPT_MAX: Final = 1_024
_LOSSY: Final = (dict, list, int)
"""What a type may lose a part of."""


def dropped_part(plain: Any, typed: Any, path: str = "") -> str:
    """The first part of `plain` that `typed`, which was decoded from it, lacks, as in `.address.zip`; "" if none."""
    if type(plain) is dict:
        return _of_map(plain, typed, path)
    if type(plain) is list:
        return _of_list(plain, typed, path)
    # An integer that a float has no room for.
    return path or "." if type(plain) is int and type(typed) is float and typed != plain else ""


def _of_map(plain: dict[Any, Any], typed: Any, path: str) -> str:
    if isinstance(typed, dict):
        if len(plain) > len(typed) and not all(type(key) is str for key in typed):
            return f"{path}.{list(plain)[-1]}"  # two keys have become one
        for key, value in plain.items():
            if key not in typed:
                # A type that has other keys than text may have made another key of it.
                if type(key) is str and all(type(other) is str for other in typed):
                    return f"{path}.{key}"
            elif type(value) in _LOSSY and (part := dropped_part(value, typed[key], f"{path}.{key}")):
                return part
        return ""
    kind: Any = type(typed)
    fields = _fields(kind)
    if fields is None:
        return ""
    for key, value in plain.items():
        name = fields.get(key)
        if name is None:
            return f"{path}.{key}"
        if (
            type(value) in _LOSSY
            and name
            and (part := dropped_part(value, getattr(typed, name, None), f"{path}.{key}"))
        ):
            return part
    return ""


def _of_list(plain: list[Any], typed: Any, path: str) -> str:
    kind = type(typed)
    if isinstance(typed, msgspec.Struct):
        config = kind.__struct_config__
        names = typed.__struct_fields__
        values = plain[1:] if config.tag is not None else plain
        if len(values) > len(names):
            return f"{path}[{len(plain) - 1}]"
        typed = [getattr(typed, name, None) for name in names[: len(values)]]
        plain = values
    elif isinstance(typed, set | frozenset):
        return f"{path}[{len(plain) - 1}]" if len(typed) < len(plain) else ""  # one that came twice
    elif not isinstance(typed, list | tuple) or len(typed) != len(plain):
        return ""
    for index, (value, other) in enumerate(zip(plain, typed, strict=True)):
        if type(value) in _LOSSY and (part := dropped_part(value, other, f"{path}[{index}]")):
            return part
    return ""


@lru_cache(_TYPES_KEPT_MAX)
def _fields(kind: Any) -> dict[str, str] | None:
    """Attributes by the name that they are encoded with, its tag's included; None if nobody knows."""
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        tag = {} if config.tag_field is None else {config.tag_field: ""}
        return {**tag, **dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))}
    if dataclasses.is_dataclass(kind):
        return {field.name: field.name for field in dataclasses.fields(kind)}
    models = getattr(kind, "model_fields", None)  # pydantic's
    if isinstance(models, dict):
        if getattr(kind, "model_config", {}).get("extra") == "allow":
            return None
        return {name: name for name in models} | {one.alias: name for name, one in models.items() if one.alias}
    attributes = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else {attribute.name: attribute.name for attribute in attributes}
