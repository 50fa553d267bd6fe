"""The text of a value that is the same in every process: sets in order, and no memory addresses.

An error is a reply, and a replay must give the same reply. These functions never raise, whatever an object's own code
does.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

import msgspec

DEPTH_MAX: Final = 8
"""Values within values are shown so deep, then as an ellipsis."""
ITEMS_MAX: Final = 1_000
"""Items that are shown of one list, set or dict."""
_STRUCT_REPR: Final = getattr(msgspec.Struct, "__repr__", None)
_CONTAINERS: Final = (list, tuple, set, frozenset, dict)
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]++")


def steady_text(value: Any, chars_max: int) -> str:
    """`repr(value)`, up to so many characters and an ellipsis."""
    try:
        text = _text(value, chars_max, 0)
    except BaseException:  # noqa: BLE001 - the object's own code: it can raise anything
        text = f"<unprintable {type(value).__name__}>"
    return text if len(text) <= chars_max else text[:chars_max] + "…"


def message_of(error: BaseException, chars_max: int) -> str:
    """`str(error)`, and what its author wrote of a `KeyError`; raises what the exception's own code raises.

    What an exception was made with is shown by `repr`, if it is no str: that is what can differ.
    """
    kind, args = type(error), error.args
    if kind.__str__ not in (BaseException.__str__, KeyError.__str__) or not args:
        return str(error)
    shown = args[0] if len(args) == 1 else args
    if type(shown) in _CONTAINERS or type(shown).__str__ is object.__str__:
        return steady_text(shown, chars_max)
    return str(shown)


def _text(value: Any, chars_max: int, depth: int) -> str:
    kind = type(value)
    if kind in _CONTAINERS:
        return _container(value, chars_max, depth)
    fields = _shown_fields(value)
    if fields is not None and depth < DEPTH_MAX:
        parts = [f"{name}={_text(getattr(value, name), chars_max, depth + 1)}" for name in fields]
        return f"{kind.__qualname__ if dataclasses.is_dataclass(kind) else kind.__name__}({', '.join(parts)})"
    # Bounded before it is searched: it may be an object of megabytes.
    return _ADDRESS.sub("", repr(value)[: 4 * chars_max])


def _container(value: Any, chars_max: int, depth: int) -> str:
    kind = type(value)
    if depth >= DEPTH_MAX:
        return "…"
    if not value:
        return repr(value)

    def inner(each: Any) -> str:
        return _text(each, chars_max, depth + 1)

    if kind is dict:
        return _enclosed("{", [f"{inner(key)}: {inner(item)}" for key, item in list(value.items())[:ITEMS_MAX]], "}")
    if kind is list:
        return _enclosed("[", [inner(item) for item in value[:ITEMS_MAX]], "]")
    if kind is tuple:
        return _enclosed("(", [inner(item) for item in value[:ITEMS_MAX]], ",)" if len(value) == 1 else ")")
    texts = sorted(map(inner, value))[:ITEMS_MAX]
    return _enclosed("{", texts, "}") if kind is set else _enclosed("frozenset({", texts, "})")


def _enclosed(opening: str, texts: list[str], closing: str) -> str:
    return f"{opening}{', '.join(texts)}{closing}"


def _shown_fields(value: Any) -> list[str] | None:
    """The fields that the `repr` shows which a record's class has by itself; None if it has another one."""
    kind = type(value)
    if isinstance(value, msgspec.Struct) and getattr(kind, "__repr__", None) is _STRUCT_REPR:
        return list(kind.__struct_fields__)
    if dataclasses.is_dataclass(kind) and hasattr(kind.__repr__, "__wrapped__"):
        return [field.name for field in dataclasses.fields(kind) if field.repr]
    return None
