"""Classes by value, where cloudpickle's way of building them empty and filling them later is not enough.

A `msgspec.Struct` must have its fields, and an enum its members, when it is made; and an annotation that is text must
be resolved while the module that it names things of is there. Reducers here belong to the packing side, builders and
setters to the unpacking side.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Final

import cloudpickle
import msgspec

Reduced = tuple[Any, ...]
"""The result of a reducer: builder, its arguments, state, two unused, state's setter."""
_MADE_BY_STRUCTS: Final = frozenset(
    {
        *("__annotations__", "__annotate_func__", "__annotations_cache__", "__classcell__", "__dict__", "__doc__"),
        *("__firstlineno__", "__match_args__", "__module__", "__orig_bases__", "__parameters__", "__qualname__"),
        *("__slots__", "__static_attributes__", "__type_params__", "__weakref__", "_abc_impl"),
    }
)
_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes)
_MADE_BY_TYPED_DICTS: Final = frozenset({"__dict__", "__weakref__", "__annotate_func__", "__annotations_cache__"})
_METHODS: Final = (types.FunctionType, classmethod, staticmethod, property)
SENTINELS: Final = {type(getattr(dataclasses, name)): name for name in ("MISSING", "KW_ONLY", "_HAS_DEFAULT_FACTORY")}
"""Types of what dataclasses compare by identity, with the names they have there."""
_MADE_BY_ENUMS: Final = frozenset({"_value_", "_name_", "__objclass__", "_sort_order_"})


def annotations_of(cls: type) -> dict[str, Any]:
    """The class's own annotations, with text resolved where its names can be found; elsewhere it stays text."""
    own = inspect.get_annotations(cls)
    module = sys.modules.get(cls.__module__)
    names = {**(vars(module) if module is not None else {}), cls.__name__: cls}
    members = {name: value for name, value in vars(cls).items() if name not in own}
    return {name: _resolved(name, value, names, members) for name, value in own.items()}


def identity(cls: type) -> dict[str, Any]:
    """How instances hash and compare: a class must know it before the first one becomes a key of a dictionary."""
    return {name: vars(cls)[name] for name in ("__eq__", "__hash__") if name in vars(cls)}


def is_cache(attribute: str) -> bool:
    """Whether a class's attribute is what msgspec remembers of it."""
    return attribute.startswith("__msgspec")


def _resolved(name: str, value: Any, names: dict[str, Any], members: dict[str, Any]) -> Any:
    holder = type("holder", (), {"__annotations__": {name: value}})
    try:
        return typing.get_type_hints(holder, names, members, include_extras=True)[name]
    except Exception:  # noqa: BLE001 - evaluating an annotation can raise anything
        return value


# Structs ---------------------------------------------------------------------------------------------------


def reduce_struct(cls: type[msgspec.Struct]) -> tuple[Reduced, dict[str, Any]]:
    """Builder and state of a Struct class, and attributes to be set when it is complete: some may be instances of it.

    It is made with its methods, since msgspec looks for some of them; the types of its fields may follow.
    """
    config = cls.__struct_config__
    options = {name: getattr(config, name) for name in dir(config) if not name.startswith("_")}
    own = inspect.get_annotations(cls)
    options["kw_only"] = _has_keyword_only(cls, own)
    # Class variables are no fields: they must not look like some when the class is made.
    fields = {field.name: _field_options(field) for field in msgspec.structs.fields(cls) if field.name in own}
    rest = {name: value for name, value in vars(cls).items() if _is_packed(name, value)}
    at_once = {name: value for name, value in rest.items() if isinstance(value, _METHODS) or type(value) in _PLAIN}
    place = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    if "__type_params__" in vars(cls):
        place["__type_params__"] = vars(cls)["__type_params__"]
    bases = vars(cls).get("__orig_bases__", cls.__bases__)
    made = (
        type(cls),
        cls.__name__,
        bases,
        options,
        {name: fields[name] for name in own if name in fields},
        {**place, **at_once},
    )
    reduced = (make_struct, made, {"__annotations__": annotations_of(cls)}, None, None, set_attributes)
    return reduced, {name: value for name, value in rest.items() if name not in at_once}


def make_struct(
    metaclass: type,
    name: str,
    bases: tuple[Any, ...],
    options: dict[str, Any],
    fields: dict[str, dict[str, Any]],
    namespace: dict[str, Any],
) -> type:
    """A Struct class whose fields have no types yet."""
    values = {field: msgspec.field(**given) for field, given in fields.items()}
    body = {**namespace, **values, "__annotations__": dict.fromkeys(fields, typing.Any)}
    return types.new_class(name, bases, {"metaclass": metaclass, **options}, lambda empty: empty.update(body))


def _field_options(field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    options: dict[str, Any] = {"name": field.encode_name}
    if field.default is not msgspec.NODEFAULT:
        options["default"] = field.default
    elif field.default_factory is not msgspec.NODEFAULT:
        options["default_factory"] = field.default_factory
    return options


def reduce_struct_instance(value: msgspec.Struct) -> Reduced:
    """A Struct's fields as they are: its `__post_init__` has seen them already."""
    fields = {name: getattr(value, name) for name in value.__struct_fields__ if hasattr(value, name)}
    return (make_struct_instance, (type(value), fields), getattr(value, "__dict__", None))


def make_struct_instance(cls: type[msgspec.Struct], fields: dict[str, Any]) -> msgspec.Struct:
    """An instance with these fields, made without its `__post_init__`."""
    if not hasattr(cls, "__post_init__"):
        return cls(**fields)
    bare = types.new_class(cls.__name__, (cls,), {}, lambda body: body.update(__post_init__=lambda self: None))
    value: msgspec.Struct = bare(**fields)
    msgspec.structs.force_setattr(value, "__class__", cls)
    return value


def _has_keyword_only(cls: type, own: dict[str, Any]) -> bool:
    parameters = inspect.signature(cls).parameters
    return any(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in own if name in parameters)


def _is_packed(name: str, value: Any) -> bool:
    if name in _MADE_BY_STRUCTS or name.startswith("__struct_") or is_cache(name):
        return False
    return not isinstance(value, types.MemberDescriptorType)  # a field


# Other types ----------------------------------------------------------------------------------------------


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
    own = vars(cls).items()
    state = {name: value for name, value in own if name not in _MADE_BY_TYPED_DICTS and not is_cache(name)}
    state["__annotations__"] = annotations_of(cls)
    return (make_typed_dict, (cls.__name__,), state, None, None, set_attributes)


def make_typed_dict(name: str) -> Any:
    """A TypedDict class without keys."""
    return typing.TypedDict(name, {})  # type: ignore[operator]  # the functional form, with a name known at run time only


def reduce_new_type(new_type: typing.NewType) -> Reduced:
    """A `NewType`, which pickle would refer to by name."""
    return (make_new_type, (new_type.__name__, new_type.__supertype__, new_type.__module__))


def make_new_type(name: str, supertype: Any, module: str) -> typing.NewType:
    """The `NewType`, of a module that cannot be imported here."""
    make: Any = typing.NewType  # with a name known at run time only
    new_type: typing.NewType = make(name, supertype)
    new_type.__module__ = module
    return new_type


def reduce_type_variable(variable: Any) -> Reduced:
    """cloudpickle's reduction without the id by which it would share one's bound with another package."""
    build, arguments = cloudpickle.Pickler.dispatch_table[typing.TypeVar](variable)
    return (build, (*arguments[:-1], None) if build is not getattr else arguments)


def reduce_sentinel(value: Any) -> Reduced:
    """One of `SENTINELS`, of which there must be only one."""
    return (getattr, (dataclasses, SENTINELS[type(value)]))


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
