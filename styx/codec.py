"""Values as bytes: how state, arguments and results are encoded, and what is refused.

State without a declared type goes through a strict encoder, because a value must come back as what it was put:
anything that msgpack would silently turn into something else (Decimal, set, a dataclass, an enum) is refused by
name. Typed state, arguments and results go through msgspec, which converts by annotation. Never pickles.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgpack
import msgspec

from styx.errors import UnsupportedValue

_DATETIME_EXT: Final = 1
_SHOWN_CHARS_MAX: Final = 80
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]++")


def _strict_default(value: Any) -> Any:
    if type(value) is tuple:
        return list(value)
    if type(value) is datetime:
        return msgpack.ExtType(_DATETIME_EXT, value.isoformat().encode())
    if type(value) is int:
        raise UnsupportedValue(
            f"{shown(value)} has more than 64 bits and cannot be stored as an int: "
            "declare Operator(..., state_type=...) with a str or Decimal field for it"
        )
    raise UnsupportedValue(
        f"{shown(value)} of type {type(value).__name__} cannot be stored without a state_type: "
        "declare Operator(..., state_type=...) with a type that msgspec can convert"
    )


def ext_hook(code: int, data: memoryview) -> Any:
    if code == _DATETIME_EXT:
        return datetime.fromisoformat(bytes(data).decode())
    raise ValueError(f"unknown extension type {code} in an encoded value")


_packer = msgpack.Packer(strict_types=True, use_bin_type=True, default=_strict_default, autoreset=True)
_decoder = msgspec.msgpack.Decoder(ext_hook=ext_hook)
_encoder = msgspec.msgpack.Encoder()
_ordered_encoder = msgspec.msgpack.Encoder(order="deterministic")
_UNENCODABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
"""What msgspec raises for what it cannot encode."""


def is_set(value: Any) -> bool:
    """Whether its order differs between processes. Asks nothing of the type: it may be one that cannot be hashed."""
    kind = type(value)
    return kind is set or kind is frozenset


def shown(value: Any) -> str:
    """A short printable form of `value` for error messages; never raises.

    Without memory addresses: an error is a reply, and a replay must give the same one.
    """
    try:
        text = repr(value)
    except BaseException:  # noqa: BLE001 - the object's own code: it can raise anything
        text = f"<unprintable {type(value).__name__}>"
    text = _ADDRESS.sub("", text[: 4 * _SHOWN_CHARS_MAX])
    return text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "…"


def encode_strict(value: Any) -> bytes:
    """Encodes a value made of None, bool, int (64 bit), float, str, bytes, list, tuple, dict and datetime.

    Raises `UnsupportedValue` naming the value for anything else, including what is nested too deeply.
    """
    _packer.reset()  # `pack_strict` may have failed
    try:
        encoded: bytes = _packer.pack(value)
    except UnsupportedValue:
        _packer.reset()
        raise
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        _packer.reset()
        raise UnsupportedValue(f"{shown(value)} cannot be stored: {error}") from None
    return encoded


decode_plain: Final[Callable[[bytes], Any]] = _decoder.decode
"""The value that `encode_strict` or `encode_any` encoded; tuples are lists from here on."""


pack_strict: Final[Callable[[Any], bytes]] = _packer.pack
"""As `encode_strict`, without its care: after any exception nothing may be packed before `encode_strict` was called,
which raises what is to be raised.
"""


def encode_any(value: Any, what: str, *names: str, ordered: bool = False) -> bytes:
    """Encodes whatever msgspec can (structs, dataclasses, Decimal, …), for places where an annotation converts back.

    `what`, with the dotted `names` behind it, names the thing for the error: `UnsupportedValue`. `ordered` sorts sets,
    and with them the keys of dictionaries: a set's own order differs between processes, and a replay must not.
    """
    try:
        return (_ordered_encoder if ordered else _encoder).encode(value)
    except _UNENCODABLE as error:
        raise _unencodable(value, " ".join([what, ".".join(names)]) if names else what, error) from None


def _unencodable(value: Any, place: str, error: Exception) -> UnsupportedValue:
    return UnsupportedValue(f"{place} cannot be encoded: {error} (value: {shown(value)})")


def holds_sets(declared: Any) -> bool:
    """Whether a value of this type can contain a set; False for what msgspec does not know."""
    if declared in (Any, None, str, int, float, bool, bytes):
        return False  # the usual ones, without an import
    from msgspec import inspect

    try:
        todo: list[Any] = [inspect.type_info(declared)]
    except (TypeError, RecursionError):
        return False
    seen: set[int] = set()
    while todo:
        info = todo.pop()
        if isinstance(info, inspect.SetType | inspect.FrozenSetType):
            return True
        if isinstance(info, inspect.Type | inspect.Field) and id(info) not in seen:
            seen.add(id(info))
            todo += [getattr(info, name, None) for name in ("item_type", "key_type", "value_type", "type")]
            todo += [*getattr(info, "item_types", ()), *getattr(info, "types", ()), *getattr(info, "fields", ())]
    return False


class TypedState:
    """Encoder and decoder of one declared state type; `put` is checked by decoding what was encoded.

    A type with sets in it is encoded in sorted order, so that equal states are equal bytes everywhere. `unpack` decodes
    what `encode` or `pack` made; `pack` does not check what it encodes.
    """

    __slots__ = ("_type", "pack", "unpack")

    def __init__(self, state_type: Any) -> None:
        self._type = state_type
        self.pack: Callable[[Any], bytes] = (_ordered_encoder if holds_sets(state_type) else _encoder).encode
        self.unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder(state_type, ext_hook=ext_hook).decode

    def decode(self, data: Any) -> Any:
        """As `unpack`, also of what `encode_strict` made when no type was declared; raises what msgspec raises.

        `data`: bytes, or whatever else msgspec decodes from.
        """
        unpack, encode = self.unpack, _encoder.encode
        try:
            return unpack(data)
        except msgspec.ValidationError as error:
            try:
                # The strict encoder has an extension of its own for a datetime, which msgspec has another form for.
                return unpack(encode(decode_plain(data)))
            except Exception:  # noqa: BLE001 - a state type's own code can run here
                raise error from None

    def encode(self, value: Any) -> bytes:
        pack, unpack = self.pack, self.unpack
        try:
            data = pack(value)
        except _UNENCODABLE as error:
            raise _unencodable(value, "the state", error) from None
        try:
            unpack(data)
        except msgspec.ValidationError as error:
            name = getattr(self._type, "__name__", str(self._type))
            raise UnsupportedValue(f"{shown(value)} does not fit the state_type {name}: {error}") from None
        return data
