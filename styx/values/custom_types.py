"""Types that msgspec leaves to us: pydantic's models, `object`, and sets. Pydantic is never imported here, only
recognized if the app has imported it.

A model is encoded as `model_dump` gives it, by its aliases, and decoded by `model_validate`: validators run, and an
error names the field that does not fit. `styx.values.declared_types` decides which types are allowed.

A set's own order follows its items' hashes, which differ between processes, and a replay must encode the same bytes. So
the items of a set are put in an order that does not depend on the process.
"""

from __future__ import annotations

import copy
import ipaddress
import sys
import warnings
from pathlib import PurePath
from types import CoroutineType
from typing import Any, Final

import msgspec

from styx.values.reading import Reading
from styx.values.sets_within import fields_of, holds_set

ERRORS_TOLD_MAX: Final = 10
"""Places that an error names of a value that does not fit a model."""
_STR_TYPES: Final = (
    PurePath,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
)
_mro = type.__dict__["__mro__"].__get__


def is_model(kind: Any) -> bool:
    """Whether it is a class of pydantic's models, of version 2."""
    pydantic = sys.modules.get("pydantic")
    model = getattr(pydantic, "BaseModel", None)
    if model is None or not hasattr(model, "model_validate") or not isinstance(kind, type):
        return False
    return any(each is model for each in _mro(kind))


def json_schema(model: Any, **options: Any) -> dict[str, Any]:
    """A model's schema by pydantic; raises its errors, and leaves out its warnings, such as of a default of bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema: dict[str, Any] = model.model_json_schema(**options)
    return schema


def enc_hook(value: Any) -> Any:
    """The form that msgspec encodes in place of a value that it does not know; raises `TypeError`."""
    kind = type(value)
    if is_model(kind):
        return _plain(value.model_dump(mode="python", by_alias=True, round_trip=True, warnings=False))
    if kind is CoroutineType or kind is Reading:
        name = value.called if kind is Reading else value.__qualname__
        raise TypeError(f"an `await` is missing: {name}(…) gives a coroutine")
    raise TypeError(f"Encoding objects of type {kind.__name__} is unsupported")


def dec_hook(kind: Any, data: Any) -> Any:
    """An object of a type that msgspec does not know, made of decoded `data`; raises `ValueError` for data that do not
    fit.
    """
    if kind is object:
        return data
    try:
        if kind.model_config.get("strict"):
            # Strictly, a Decimal is no str; but msgpack and JSON have no Decimals, and from JSON pydantic takes a str.
            return kind.model_validate_json(msgspec.json.encode(data))
        return kind.model_validate(data)
    except ValueError as error:
        raise ValueError(_told(error)) from None


def _told(error: ValueError) -> str:
    """A validation error's text without addresses of web pages and input, which differ between versions."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return str(error)
    found = errors(include_url=False, include_context=False, include_input=False)
    told = []
    for each in found[:ERRORS_TOLD_MAX]:
        place = ".".join(str(part) for part in each["loc"])
        told.append(f"{place}: {each['msg']}" if place else str(each["msg"]))
    if len(found) > ERRORS_TOLD_MAX:
        told.append(f"and {len(found) - ERRORS_TOLD_MAX} more")
    return "; ".join(told)


def _plain(value: Any) -> Any:
    """A dump with what pydantic reads from text as text; sets in it are put in order by who encodes it."""
    kind = type(value)
    if kind is dict:
        return {_plain(key): _plain(item) for key, item in value.items()}
    if kind is list:
        return [_plain(item) for item in value]
    if kind is tuple:
        return tuple(_plain(item) for item in value)
    if kind is set or kind is frozenset:
        return in_order({_plain(item) for item in value})
    if isinstance(value, _STR_TYPES) or kind.__name__.endswith("Url"):
        return str(value)
    return value


# Sets ----------------------------------------------------------------------------------------------------------------


_SORTABLE: Final = ({str}, {int}, {bytes})
_encode = msgspec.msgpack.Encoder(enc_hook=enc_hook).encode
_set = object.__setattr__


def in_order(value: Any) -> Any:
    """A copy of the value with a sorted list in place of each set; it is encoded as the value is."""
    if not holds_set(value):
        return value
    if isinstance(value, set | frozenset):
        items = [in_order(item) for item in value]
        if set(map(type, items)) in _SORTABLE:
            return sorted(items)
        return sorted(items, key=_encode)
    if isinstance(value, dict):
        return {_key_in_order(key): in_order(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [in_order(item) for item in value]
    changed = copy.copy(value)
    for name in fields_of(type(value)):
        item = getattr(value, name, None)
        if holds_set(item):
            if isinstance(changed, msgspec.Struct):
                msgspec.structs.force_setattr(changed, name, in_order(item))
            else:
                _set(changed, name, in_order(item))
    return changed


def _key_in_order(key: Any) -> Any:
    """As `in_order`, and still a key."""
    if isinstance(key, frozenset | tuple) and holds_set(key):
        return tuple(_key_in_order(part) for part in (in_order(key) if isinstance(key, frozenset) else key))
    return key
