"""Classes by value, where cloudpickle's way of building them empty and filling them later is not enough.

A `msgspec.Struct` must have its fields, and an enum its members, when it is made; and an annotation that is text must
be resolved while the module that it names things of is there. Reducers here belong to the packing side, builders and
setters to the unpacking one. They hold no state.
"""

from __future__ import annotations

import enum
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Final

import msgspec

Reduced = tuple[Any, ...]
"""What a reducer returns: builder, its arguments, state, two unused, state's setter."""
_MADE_BY_STRUCTS: Final = frozenset(
    {
        *("__annotations__", "__annotate_func__", "__annotations_cache__", "__classcell__", "__dict__", "__doc__"),
        *("__firstlineno__", "__match_args__", "__module__", "__orig_bases__", "__parameters__", "__qualname__"),
        *("__slots__", "__static_attributes__", "__type_params__", "__weakref__", "_abc_impl"),
    }
)
_MADE_BY_TYPED_DICTS: Final = frozenset({"__dict__", "__weakref__", "__annotate_func__", "__annotations_cache__"})
_METHODS: Final = (types.FunctionType, classmethod, staticmethod, property)
_MADE_BY_ENUMS: Final = frozenset({"_value_", "_name_", "__objclass__", "_sort_order_"})


def annotations_of(cls: type) -> dict[str, Any]:
    """The class's own annotations, with text resolved where its names can be found; elsewhere it stays text."""
    own = inspect.get_annotations(cls)
    module = sys.modules.get(cls.__module__)
    names = {**(vars(module) if module is not None else {}), cls.__name__: cls}
    members = {name: value for name, value in vars(cls).items() if name not in own}
    return {name: _resolved(name, value, names, members) for name, value in own.items()}


def _resolved(name: str, value: Any, names: dict[str, Any], members: dict[str, Any]) -> Any:
    holder = type("holder", (), {"__annotations__": {name: value}})
    try:
        return typing.get_type_hints(holder, names, members, include_extras=True)[name]
    except Exception:  # noqa: BLE001 - evaluating an annotation can raise anything
        return value


# Structs ---------------------------------------------------------------------------------------------------


def reduce_struct(cls: type[msgspec.Struct]) -> Reduced:
    """Builder and state of a Struct class: methods at once, since msgspec looks for some; types of fields later."""
    config = cls.__struct_config__
    options = {name: getattr(config, name) for name in dir(config) if not name.startswith("_")}
    own = inspect.get_annotations(cls)
    fields = [field for field in msgspec.structs.fields(cls) if field.name in own]
    options["kw_only"] = _has_keyword_only(cls, own)
    defaults = {
        field.name: (field.default_factory, field.default, field.encode_name)
        for field in fields
        if not (field.required and field.encode_name == field.name)
    }
    rest = {name: value for name, value in vars(cls).items() if _is_packed(name, value)}
    methods = {name: value for name, value in rest.items() if isinstance(value, _METHODS)}
    place = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    if "__type_params__" in vars(cls):
        place["__type_params__"] = vars(cls)["__type_params__"]
    bases = vars(cls).get("__orig_bases__", cls.__bases__)
    state = {name: value for name, value in rest.items() if name not in methods}
    # Class variables are no fields: they must not look like some when the class is made.
    names = [name for name in own if name in cls.__struct_fields__]
    made = (type(cls), cls.__name__, bases, options, names, defaults, {**place, **methods})
    return (make_struct, made, {**state, "__annotations__": annotations_of(cls)}, None, None, set_attributes)


def make_struct(
    metaclass: type,
    name: str,
    bases: tuple[Any, ...],
    options: dict[str, Any],
    fields: list[str],
    defaults: dict[str, tuple[Any, Any, str]],
    namespace: dict[str, Any],
) -> type:
    """A Struct class whose fields have no types yet."""
    values = {
        field: msgspec.field(name=encode_name)
        if factory is msgspec.NODEFAULT and default is msgspec.NODEFAULT
        else msgspec.field(default=default, name=encode_name)
        if factory is msgspec.NODEFAULT
        else msgspec.field(default_factory=factory, name=encode_name)
        for field, (factory, default, encode_name) in defaults.items()
    }
    body = {**namespace, **values, "__annotations__": dict.fromkeys(fields, typing.Any)}
    return types.new_class(name, bases, {"metaclass": metaclass, **options}, lambda empty: empty.update(body))


def _has_keyword_only(cls: type, own: dict[str, Any]) -> bool:
    parameters = inspect.signature(cls).parameters
    return any(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in own if name in parameters)


def _is_packed(name: str, value: Any) -> bool:
    if name in _MADE_BY_STRUCTS or name.startswith(("__struct_", "__msgspec")):
        return False
    return not isinstance(value, types.MemberDescriptorType)  # a field


# Enums and typed dictionaries ------------------------------------------------------------------------------


def complete_enum(cls: type[enum.Enum], reduced: Reduced) -> Reduced:
    """cloudpickle's reduction of an enum, with its aliases and with what its members were given by `__init__`."""
    build, arguments, (attributes, _), *_ = reduced
    members = cls.__members__
    values = {name: member.value for name, member in members.items()}
    attributes = {name: value for name, value in attributes.items() if name not in members}
    details = {
        member.name: {name: value for name, value in vars(member).items() if name not in _MADE_BY_ENUMS}
        for member in cls
    }
    arguments = (*arguments[:3], values, *arguments[4:])
    return (build, arguments, (attributes, details), None, None, set_enum)


def set_enum(cls: type[enum.Enum], state: tuple[dict[str, Any], dict[str, dict[str, Any]]]) -> None:
    """The state that `complete_enum` took."""
    attributes, details = state
    set_attributes(cls, attributes)
    for name, values in details.items():
        vars(cls[name]).update(values)


def reduce_typed_dict(cls: Any) -> Reduced:
    """Builder and state of a TypedDict class, which cannot be made from its bases."""
    state = {name: value for name, value in vars(cls).items() if name not in _MADE_BY_TYPED_DICTS}
    state["__annotations__"] = annotations_of(cls)
    return (make_typed_dict, (cls.__name__,), state, None, None, set_attributes)


def make_typed_dict(name: str) -> Any:
    """A TypedDict class without keys."""
    return typing.TypedDict(name, {})  # type: ignore[operator]  # the functional form, with a name known at run time only


def set_attributes(cls: type, attributes: dict[str, Any]) -> None:
    """Sets what a class was packed with beside what it was built from."""
    for name, value in attributes.items():
        setattr(cls, name, value)


# Functions that hold others ---------------------------------------------------------------------------------


def reduce_cached(function: Any) -> Reduced:
    """A `functools.cache`d function, with an empty cache."""
    parameters = function.cache_parameters()
    return (make_cached, (function.__wrapped__, parameters["maxsize"], parameters["typed"]))


def make_cached(function: Callable[..., Any], maxsize: int | None, typed: bool) -> Callable[..., Any]:
    """The function with a cache of its own."""
    from functools import lru_cache

    return lru_cache(maxsize, typed)(function)
