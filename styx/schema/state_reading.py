"""One stored value as an app's code reads it, an entity's state or a row: whether it is decoded, or must be converted.

`migrate=` is for exactly those values that the declared type does not read completely: it cannot decode them, or would
drop a part of them. The type must read the result of `migrate=` completely, so `migrate=` is never called for that
result again, however often such a version is deployed. Pure; the state is not changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from styx.errors import describe
from styx.model.migration import Migration
from styx.values.codec import TypedState, decode_plain

_AT: Final = " - at `$"


class Misfit(Exception):
    """A stored value cannot be used; its text says why, and begins with the path to the part that is to blame.

    Made of a text, or of the codec's error and the words behind it: the text is made only if it is read.
    """

    def __str__(self) -> str:
        error, *behind = self.args
        return str(error) if isinstance(error, str) else "".join([reason_of(error), *behind])


class Reading:
    """The reading of one value. `data` is what the new code stores in its place, None if it stays. `dropped` is the
    path to a part that the new type does not have.
    """

    __slots__ = ("data", "dropped")

    def __init__(self, data: bytes | None = None, dropped: str = "") -> None:
        self.data = data
        self.dropped = dropped


_WHOLE: Final = Reading()


class Declared(Protocol):
    """What says how values are stored: an operator, whose values are states, or a table, whose values are rows."""

    @property
    def typed_state(self) -> TypedState | None: ...
    @property
    def migration(self) -> Migration | None: ...
    @property
    def encode_state(self) -> Callable[[Any], bytes]: ...


class StateReader:
    """Reads stored values of what is `declared`; what it converts may have `bytes_max` bytes. `kind`: as messages name
    the declared type.
    """

    def __init__(self, declared: Declared, bytes_max: int, kind: str = "state_type") -> None:
        self._bytes_max = bytes_max
        self._typed = declared.typed_state
        self._migration = declared.migration
        self._encode = declared.encode_state
        self._kind = kind

    @property
    def runs_code(self) -> bool:
        """Reading may run code of the app's: of its types, or its `migrate=`."""
        return self._typed is not None

    def read(self, data: bytes) -> Reading:
        """Reads a stored value with the new code; raises `Misfit` if the code cannot use it."""
        typed = self._typed
        try:
            if typed is None:
                decode_plain(data)
                return _WHOLE
            value = typed.decode(data)
            if typed.pack(value) == data:
                return _WHOLE  # the usual case
            dropped = dropped_part(decode_plain(data), value)
        except BaseException as error:  # noqa: BLE001 - a state type's own code runs here: it can raise anything
            if self._migration is None:
                raise Misfit(error) from None
        else:
            if not dropped or self._migration is None:
                return Reading(None, dropped)
        return Reading(self._migrated(data))

    def _migrated(self, data: bytes) -> bytes:
        new = self._once(data)
        if self._once(data) != new:
            raise Misfit(
                ": migrate= gave two results for one value; it must use nothing but that: no clock, no random numbers"
            )
        typed = self._typed
        assert typed is not None
        try:
            dropped = dropped_part(decode_plain(new), typed.decode(new))
        except BaseException as error:  # noqa: BLE001 - a state type's own code runs here
            raise Misfit(f": what migrate= gave cannot be read again: {describe(error)[1]}") from None
        if dropped:
            raise Misfit(f": what migrate= gave has {dropped}, which the {self._kind} does not have")
        if len(new) > self._bytes_max:
            raise Misfit(f": what migrate= gave has {len(new)} bytes; the limit is {self._bytes_max}")
        return new

    def _once(self, data: bytes) -> bytes:
        migration = self._migration
        assert migration is not None
        try:
            old = migration.decode(data)
        except BaseException as error:  # noqa: BLE001 - the old type's own code runs here
            raise Misfit(error, " (the type of migrate='s parameter)") from None
        try:
            new = migration.function(old)
        except BaseException as error:  # noqa: BLE001 - the user's function can raise anything
            kind, message = describe(error)
            raise Misfit(f": migrate= raised {kind}: {message}") from None
        try:
            encode = self._encode
            return encode(new)
        except BaseException as error:  # noqa: BLE001 - a value's own code runs here
            raise Misfit(f": migrate= returned what cannot be stored: {describe(error)[1]}") from None


def reason_of(error: BaseException) -> str:
    """The error's text in the form that follows an entity's name: `.address: missing required field 'zip'`."""
    kind, message = describe(error)
    message, _, path = message.partition(_AT)
    message = message.replace("`", "'").removeprefix("Object ")
    text = message[:1].lower() + message[1:] if path or message.startswith(("Expected", "missing")) else message
    prefix = "" if kind in ("ValidationError", "DecodeError") else f"{kind}: "
    return f"{path.removesuffix('`')}: {prefix}{text}"


# Dropped parts -------------------------------------------------------------------------------------------------------


_TYPES_KEPT_MAX: Final = 1_024
_LOSSY: Final = (dict, list, int)
"""Classes of values of which a type may lose a part."""


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
    """Attributes by the name that they are encoded with, the tag's included; None if that is not known."""
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
