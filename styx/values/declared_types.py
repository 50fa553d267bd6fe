"""Which types an app may declare for state, parameters and results. A type that could only fail later is refused by
name.

Walks the whole tree of a type.
"""

from __future__ import annotations

import typing
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import inspect

from styx.errors import ConfigurationError
from styx.values.custom_types import is_model, json_schema

_BUILT_IN: Final = (str, int, float, bytes, bytearray, dict, list, tuple, set, frozenset)
_INSTEAD: Final = {
    deque: "list",
    defaultdict: "dict",
    OrderedDict: "dict",
    Counter: "dict[…, int]",
    ChainMap: "dict",
    complex: "tuple[float, float]",
    range: "list[int]",
}
_UNION_OF_MODELS: Final = "custom type"
"""In what msgspec says of a union with a type that is not its own."""
_UNHASHABLE: Final = (inspect.ListType, inspect.DictType, inspect.SetType, inspect.TypedDictType, inspect.ByteArrayType)


def check_declared(declared: Any) -> None:
    """Raises `ConfigurationError`, which says what is wrong with the type, if state or arguments of it could not be
    converted.
    """
    _check_metadata(declared)
    try:
        info = inspect.type_info(declared)
        msgspec.msgpack.Decoder(declared, dec_hook=_never)
    except Exception as error:  # noqa: BLE001 - whatever msgspec says about a type is the declaration's fault
        told = str(error)
        if _UNION_OF_MODELS in told:
            told += "; make it the field of a pydantic model, or its `RootModel[A | B]`"
        raise ConfigurationError(told) from None
    for node in nodes_of(info):
        _check_node(node)


def check_result(declared: Any) -> None:
    """As `check_declared`, for a result, which is only encoded: what cannot be is refused."""
    try:
        info = inspect.type_info(declared)
    except Exception:  # noqa: BLE001 - a type that nothing can be converted to can be a result's
        return
    for node in nodes_of(info):
        if isinstance(node, inspect.CustomType) and _is_plain_class(node.cls):
            _check_custom(node.cls)


def type_text(kind: Any) -> str:
    """A type's name as its author writes it."""
    name = getattr(kind, "__qualname__", None)
    return name.rpartition("<locals>.")[2] if isinstance(name, str) else str(kind)


def _never(kind: Any, data: Any) -> Any:
    raise NotImplementedError


def nodes_of(info: inspect.Type) -> Iterator[inspect.Type]:
    """The type itself and all that it is made of, each once, though types contain themselves."""
    todo: list[Any] = [info]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, inspect.Type):
            yield node
        todo += _parts_of(node)


def _parts_of(node: Any) -> list[Any]:
    """The types, or fields, that a type of `msgspec.inspect` is made of."""
    parts = [getattr(node, name, None) for name in ("item_type", "key_type", "value_type", "type")]
    parts += [*getattr(node, "item_types", ()), *getattr(node, "types", ()), *getattr(node, "fields", ())]
    return [each for each in parts if isinstance(each, inspect.Type | inspect.Field)]


def _check_node(node: inspect.Type) -> None:
    if isinstance(node, inspect.CustomType):
        _check_custom(node.cls)
    elif isinstance(node, inspect.DataclassType) and hasattr(node.cls, "__pydantic_validator__"):
        raise ConfigurationError(
            f"{type_text(node.cls)!r} is a dataclass of pydantic, whose validators styx would not run: use a pydantic "
            "model (BaseModel), a msgspec.Struct or a dataclass of the standard library"
        )
    elif isinstance(node, inspect.SetType | inspect.FrozenSetType):
        _check_hashable(node.item_type, "an item of a set")
    elif isinstance(node, inspect.DictType):
        _check_hashable(node.key_type, "a key of a dict")


def plain_class(cls: Any) -> Any:
    """The class itself of one that was given parameters, as `Pair` of `Pair[int]`, for which msgspec gives an alias."""
    return typing.get_origin(cls) or cls


def _check_hashable(node: inspect.Type, what: str) -> None:
    if isinstance(node, inspect.StructType):
        cls = plain_class(node.cls)
        config = cls.__struct_config__
        hashable = config.frozen or not config.eq or "__hash__" in vars(cls)
    elif isinstance(node, inspect.DataclassType):
        hashable = plain_class(node.cls).__hash__ is not None
    else:
        hashable = not isinstance(node, _UNHASHABLE)
    if not hashable:
        raise ConfigurationError(
            f"{what} has to be hashable, and a {_node_text(node)} is not: use a tuple, or freeze it"
        )


def _node_text(node: inspect.Type) -> str:
    cls = getattr(node, "cls", None)
    return type(node).__name__.removesuffix("Type").lower() if cls is None else type_text(cls)


def _check_custom(cls: Any) -> None:
    if cls is object:
        return
    if is_model(cls):
        _check_model(cls)
        return
    name = type_text(cls)
    if _is_old_model(cls):
        raise ConfigurationError(
            f"{name!r} is a pydantic model of version 1, which styx cannot convert: use version 2's BaseModel, "
            "msgspec.Struct or a dataclass"
        )
    instead = _INSTEAD.get(cls)
    if instead is not None:
        raise ConfigurationError(f"{name!r} cannot be converted to: declare {instead} and convert it in the function")
    if _is_plain_class(cls):
        raise ConfigurationError(
            f"{name!r} is a plain class, which styx cannot convert: use msgspec.Struct, a dataclass or a pydantic model"
        )
    raise ConfigurationError(
        f"{name!r} says too little for a value to be converted to it: declare a concrete type, as list[…] or dict[…]"
    )


def _is_plain_class(cls: Any) -> bool:
    """Not one that says only what its values can do, and none that msgspec encodes as what it derives from."""
    return (
        isinstance(cls, type)
        and cls is not object
        and not issubclass(cls, _BUILT_IN)
        and not is_model(cls)
        and cls.__module__ not in ("builtins", "typing", "collections.abc")
        and not getattr(cls, "_is_protocol", False)
        and not getattr(cls, "__abstractmethods__", None)
    )


def _is_old_model(cls: Any) -> bool:
    return isinstance(cls, type) and any(
        each.__name__ == "BaseModel" and each.__module__.startswith("pydantic") for each in cls.__mro__
    )


def _check_model(model: Any) -> None:
    name = type_text(model)
    for mode in ("validation", "serialization"):
        try:
            json_schema(model, mode=mode)
        except Exception as error:  # noqa: BLE001 - pydantic's own words, of several kinds
            why = str(error).partition("\n")[0]
            raise ConfigurationError(f"pydantic model {name!r} cannot travel as data: {why}") from None
    for field_name, field in model.model_fields.items():
        if "Secret" in str(field.annotation):
            raise ConfigurationError(
                f"pydantic model {name!r}: {field_name!r} is a secret, which pydantic does not give away: declare a str"
            )
        given = field.serialization_alias or field_name
        taken = [field.validation_alias or field_name]
        by_name = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
        if by_name:
            taken.append(field_name)
        choices = [choice for each in taken for choice in getattr(each, "choices", [each])]
        if given not in choices:
            raise ConfigurationError(
                f"pydantic model {name!r}: {field_name!r} is written as {given!r} and read as {choices[0]!r}: give it "
                "one alias, or populate_by_name=True"
            )


def _check_metadata(declared: Any) -> None:
    """Pydantic's constraints on types that are not in its models would be passed over."""
    todo = [declared]
    while todo:
        each = todo.pop()
        for extra in getattr(each, "__metadata__", ()):
            if type(extra).__module__.partition(".")[0] in ("pydantic", "annotated_types"):
                raise ConfigurationError(
                    f"{type(extra).__name__} of pydantic has no effect outside of a pydantic model: use msgspec.Meta"
                )
        todo += [part for part in typing.get_args(each) if not isinstance(part, str | int)]
