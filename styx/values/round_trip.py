"""Whether a typed state comes back unchanged: the place where it would not, and what to do about it.

A value with a declared type comes back as that type, so plain data may be given for it; no part of it may be lost. A
value whose declared type allows anything (`Any`, `object`, a bare `dict` or `list`) must be of a type that msgpack has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from types import FunctionType
from typing import Any, Final, NamedTuple

import msgpack
from msgspec import inspect

from styx.values.declared_types import nodes_of, type_text

PLACE_DEPTH_MAX: Final = 20
"""A place in nested values is named to this depth."""
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes})
_SEQUENCES: Final = (list, tuple)


class Misfit(NamedTuple):
    """Where in the state, as Python writes it (`.meta['t'][0]`), and what is the matter with it."""

    path: str
    message: str


Check = Callable[[Any, str], Misfit | None]


# Declared places -----------------------------------------------------------------------------------------------


def lost(value: Any, back: Any, path: str = "") -> Misfit | None:
    """The first difference between what was put and what comes back that is more than a conversion to its type."""
    kind, given = type(back), type(value)
    if given is kind and given in _PLAIN:
        return None if value == back or value != value else _becomes(path, value, back)  # NaN differs from itself
    if given is dict:
        return _lost_items(value, back, path)
    if given in _SEQUENCES:
        return _lost_elements(value, back, path)
    if given in _PLAIN:
        if given is int and kind is float and value != back:
            return Misfit(path, f"{value} would come back as {back}, since a float has 53 bits: declare int or Decimal")
        return None  # a str for a Decimal, an int for a float: the type says what it becomes
    if given is not kind:
        return None if _equal_sets(value, back) else _becomes(path, value, back)
    names = field_names(kind)
    if names is None:
        return None if _equal(value, back) or value != value else _becomes(path, value, back)
    for name in names:
        found = lost(getattr(value, name, None), getattr(back, name, None), f"{path}.{name}")
        if found is not None:
            return found
    if hasattr(kind, "model_fields") and not (_equal(value, back) and _hidden(value) == _hidden(back)):
        return Misfit(path, f"a {type_text(kind)} would lose what is private or excluded in it")
    return None


def _hidden(model: Any) -> Any:
    """The parts of a model that are no fields: its own `__eq__` may pass over them."""
    return getattr(model, "__pydantic_private__", None), getattr(model, "__pydantic_extra__", None)


def equality_tells(declared: Any) -> bool:
    """Whether two values of this type that are equal are the same in all their parts: not where a class compares them
    in a way of its own, by an id for example.
    """
    return all(_compares_all(getattr(node, "cls", None)) for node in nodes_of(inspect.type_info(declared)))


def _compares_all(kind: Any) -> bool:
    if not isinstance(kind, type) or field_names(kind) is None:
        return True
    if dataclasses.is_dataclass(kind) and not all(field.compare for field in dataclasses.fields(kind)):
        return False
    equal = getattr(kind, "__eq__", None)
    if not isinstance(equal, FunctionType):
        return True  # Python's own, or msgspec's
    return equal.__code__.co_filename.startswith("<") or equal.__module__.startswith("pydantic.")


def _lost_items(value: dict[Any, Any], back: Any, path: str) -> Misfit | None:
    if type(back) is not dict:
        fields = _encoded_names(type(back))
        for key, item in value.items():
            if key not in fields:
                known = ", ".join(map(str, fields))
                return Misfit(path, f"{type_text(type(back))} has no field {key!r}; it has: {known}")
            found = lost(item, getattr(back, fields[key], None), f"{path}[{key!r}]")
            if found is not None:
                return found
        return None
    if len(value) != len(back):
        missing = next((key for key in value if key not in back), None)
        return Misfit(path, f"the type has no field {missing!r}, or two keys become one")
    for (key, item), (back_key, back_item) in zip(value.items(), back.items(), strict=True):
        found = lost(key, back_key, path) or lost(item, back_item, f"{path}[{key!r}]")
        if found is not None:
            return found
    return None


def _lost_elements(value: Any, back: Any, path: str) -> Misfit | None:
    if type(back) in (set, frozenset):
        return None
    names = field_names(type(back))
    elements = list(back) if names is None or isinstance(back, tuple) else [getattr(back, name) for name in names]
    for index, (item, back_item) in enumerate(zip(value, elements, strict=False)):
        found = lost(item, back_item, f"{path}[{index}]")
        if found is not None:
            return found
    if len(value) > len(elements):
        return Misfit(path, f"{len(value)} elements become {len(elements)}")
    return None


def _equal_sets(value: Any, back: Any) -> bool:
    sets = (set, frozenset)
    return type(value) in sets and type(back) in sets and _equal(value, back)


def _becomes(path: str, value: Any, back: Any) -> Misfit:
    given, kind = type(value), type(back)
    if given is kind:
        return Misfit(path, f"a {type_text(given)} would come back as another one: something in it is lost or changes")
    if isinstance(value, kind) and field_names(given) is not None:
        return Misfit(path, f"a {type_text(given)} would come back as a {type_text(kind)}: declare {type_text(given)}")
    return Misfit(path, f"a {type_text(given)} would come back as a {type_text(kind)}: {_advice(value)}")


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - the state type's own code
        return False


def field_names(kind: Any) -> tuple[str, ...] | None:
    """The attributes that a kind of records has; None if it is none."""
    names: tuple[str, ...] | None = getattr(kind, "__struct_fields__", None)
    if names is not None:
        return names
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(each.name for each in kind.__attrs_attrs__)
    if hasattr(kind, "model_fields"):
        return tuple(kind.model_fields)
    return tuple(kind._fields) if issubclass(kind, tuple) and hasattr(kind, "_fields") else None


def _encoded_names(kind: Any) -> dict[str, str]:
    names = field_names(kind) or ()
    encoded = getattr(kind, "__struct_encode_fields__", names)
    found = dict(zip(encoded, names, strict=True))
    for name in names if hasattr(kind, "model_fields") else ():
        alias = kind.model_fields[name].validation_alias
        found |= {each: name for each in getattr(alias, "choices", [alias]) if isinstance(each, str)}
    tag = getattr(getattr(kind, "__struct_config__", None), "tag_field", None)
    if tag is not None:
        found[tag] = "__class__"
    return found


# Open places ---------------------------------------------------------------------------------------------------


def open_places(declared: Any) -> Check | None:
    """The check of those places of a value where its type allows anything; None if there are none."""
    check = _Checks().of(inspect.type_info(declared))
    return None if check is _nothing else check


def _is_open(node: Any) -> bool:
    return isinstance(node, inspect.AnyType) or (isinstance(node, inspect.CustomType) and node.cls is object)


class _Checks:
    """A check for each node of a type, made once: types contain themselves."""

    def __init__(self) -> None:
        self._made: dict[int, Check] = {}
        self._nodes: list[Any] = []  # alive, so that no other gets the id

    def of(self, node: Any) -> Check:
        if _is_open(node):
            return plain
        made = self._made.get(id(node))
        if made is None:
            if not any(map(_is_open, nodes_of(node))):
                return _nothing
            self._nodes.append(node)
            self._made[id(node)] = lambda value, path: self._made[id(node)](value, path)  # noqa: PLW0108 - not yet made
            made = self._made[id(node)] = self._make(node)
        return made

    def _make(self, node: Any) -> Check:
        if isinstance(node, inspect.UnionType):
            return self._union([self.of(each) for each in node.types])
        if isinstance(node, inspect.DictType):
            return self._dict(self.of(node.key_type), self.of(node.value_type))
        if isinstance(node, inspect.TupleType):
            return self._each([self.of(each) for each in node.item_types])
        if hasattr(node, "item_type"):
            return self._every(self.of(node.item_type))
        if hasattr(node, "fields"):
            return self._fields({(f.name, f.encode_name): self.of(f.type) for f in node.fields})
        return _nothing

    def _union(self, checks: list[Check]) -> Check:
        return lambda value, path: next((found for check in checks if (found := check(value, path))), None)

    def _dict(self, of_key: Check, of_value: Check) -> Check:
        if of_value is plain and of_key in (plain, _nothing):
            return lambda value, path: plain(value, path) if type(value) is dict else None

        def check(value: Any, path: str) -> Misfit | None:
            if type(value) is dict:
                for key, item in value.items():
                    found = of_key(key, path) or of_value(item, f"{path}[{key!r}]")
                    if found is not None:
                        return found
            return None

        return check

    def _each(self, checks: list[Check]) -> Check:
        def check(value: Any, path: str) -> Misfit | None:
            if isinstance(value, _SEQUENCES):
                for index, (of_item, item) in enumerate(zip(checks, value, strict=False)):
                    found = of_item(item, f"{path}[{index}]")
                    if found is not None:
                        return found
            return None

        return check

    def _every(self, of_item: Check) -> Check:
        def check(value: Any, path: str) -> Misfit | None:
            if isinstance(value, (*_SEQUENCES, set, frozenset)):
                if of_item is plain and _is_plain(list(value)):
                    return None
                for index, item in enumerate(value):
                    found = of_item(item, f"{path}[{index}]")
                    if found is not None:
                        return found
            return None

        return check

    def _fields(self, fields: dict[tuple[str, str], Check]) -> Check:
        wanted = [(name, encoded, check) for (name, encoded), check in fields.items() if check is not _nothing]

        def check(value: Any, path: str) -> Misfit | None:
            for name, encoded, of_field in wanted:
                if type(value) is dict:
                    if encoded in value:
                        found = of_field(value[encoded], f"{path}[{encoded!r}]")
                        if found is not None:
                            return found
                elif hasattr(value, name):
                    found = of_field(getattr(value, name), f"{path}.{name}")
                    if found is not None:
                        return found
            return None

        return check


def _nothing(value: Any, path: str) -> Misfit | None:
    return None


def plain(value: Any, path: str) -> Misfit | None:
    """The first thing in a value that msgpack would change."""
    if _is_plain(value):
        return None
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            found = plain(key, path) or plain(item, f"{path}[{key!r}]")
            if found is not None:
                return found
    if kind is list:
        for index, item in enumerate(value):
            found = plain(item, f"{path}[{index}]")
            if found is not None:
                return found
    return Misfit(
        path, f"a {type_text(kind)} would not come back as one from where any type is allowed: {_advice(value)}"
    )


def place_of(value: Any, fits: Callable[[Any], bool]) -> str:
    """Where in nested dicts, lists and tuples the first value is that does not fit."""
    path = ""
    for _ in range(PLACE_DEPTH_MAX):
        items: Any = value.items() if type(value) is dict else enumerate(value) if type(value) in _SEQUENCES else ()
        inner = next(((key, item) for key, item in items if not fits(item)), None)
        if inner is None:
            break
        path, value = f"{path}[{inner[0]!r}]", inner[1]
    return path


def _is_plain(value: Any) -> bool:
    try:
        _packer.pack(value)
    except Exception:  # noqa: BLE001 - what is wrong with it is looked for by who asks
        _packer.reset()
        return False
    return True


def _refuse(value: Any) -> None:
    if type(value) is not datetime or value.tzinfo is None:
        raise TypeError


_packer = msgpack.Packer(strict_types=True, use_bin_type=True, default=_refuse, autoreset=True)


def _advice(value: Any) -> str:
    if isinstance(value, set | frozenset):
        return "declare set[…], or put sorted(…)"
    if type(value) is tuple:
        return "declare tuple[…], or put a list"
    if type(value) is datetime:
        return "declare datetime, or give it a time zone"
    return "declare its type"
