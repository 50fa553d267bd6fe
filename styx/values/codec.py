"""Values as bytes: how state, arguments and results are encoded, and what is refused.

State without a declared type goes through a strict encoder, because a value must come back unchanged: a value that
msgpack would silently change (Decimal, set, a dataclass, an enum) is refused by name. Typed state, arguments and
results go through msgspec, which converts by annotation. Nothing is ever pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import CoroutineType
from typing import Any, Final

import msgpack
import msgspec
from msgspec import inspect

from styx.errors import UnsupportedValue
from styx.values.custom_types import dec_hook, enc_hook, in_order
from styx.values.declared_types import nodes_of, type_text
from styx.values.reading import Reading
from styx.values.round_trip import Misfit, equality_tells, lost, open_places, place_of
from styx.values.sets_within import holds_set
from styx.values.settled_types import Settled, settled
from styx.values.steady_text import steady_text

_DATETIME_EXT: Final = 1
_DATETIME: Final[Any] = datetime  # a name for compiled code, which looks classes up
_SHOWN_CHARS_MAX: Final = 80
_PLAIN_TYPES: Final = (int, float, str, bytes, dict, list)


def _strict_default(value: Any) -> Any:
    kind = type(value)
    if kind is tuple:
        return list(value)
    if kind is datetime:
        return msgpack.ExtType(_DATETIME_EXT, value.isoformat().encode())
    if kind is int:
        raise UnsupportedValue(
            f"{shown(value)} has more than 64 bits and cannot be stored as an int: "
            "declare Operator(..., state_type=...) with a str or Decimal field for it"
        )
    told = f"{shown(value)} of type {kind.__name__} cannot be stored"
    if kind is CoroutineType or kind is Reading:
        raise UnsupportedValue(f"{told}: an `await` is missing")
    plain = next((each for each in _PLAIN_TYPES if isinstance(value, each)), None)
    if plain is not None:
        raise UnsupportedValue(f"{told}, and would not come back as one: convert it, {plain.__name__}(…)")
    raise UnsupportedValue(
        f"{told} without a state_type: declare Operator(..., state_type=...) with a type that msgspec can convert"
    )


def ext_hook(code: int, data: memoryview) -> Any:
    if code == _DATETIME_EXT:
        return datetime.fromisoformat(bytes(data).decode())
    raise ValueError(f"unknown extension type {code} in an encoded value")


_packer = msgpack.Packer(strict_types=True, use_bin_type=True, default=_strict_default, autoreset=True)
_decoder = msgspec.msgpack.Decoder(ext_hook=ext_hook)
_encoder = msgspec.msgpack.Encoder(enc_hook=enc_hook)
_parts_of: Final = msgspec.structs.astuple
_UNENCODABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
"""The errors of msgspec for values that it cannot encode."""


def is_scalar(value: Any) -> bool:
    """Whether there is nothing in it. Asks nothing of the type: it may be one that cannot be hashed."""
    kind = type(value)
    return value is None or kind is str or kind is int or kind is bool or kind is float or kind is bytes


def shown(value: Any) -> str:
    """A short printable form of `value` for error messages; never raises, and is the same in every process."""
    return steady_text(value, _SHOWN_CHARS_MAX)


def encode_strict(value: Any) -> bytes:
    """Encodes a value made of None, bool, int (64 bit), float, str, bytes, list, tuple, dict and datetime.

    Raises `UnsupportedValue` naming the value for anything else, including what is nested too deeply.
    """
    _packer.reset()  # `pack_strict` may have failed
    try:
        encoded: bytes = _packer.pack(value)
    except UnsupportedValue as error:
        _packer.reset()
        error.path = place_of(value, _packs)
        raise
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        _packer.reset()
        raise UnsupportedValue(f"{shown(value)} cannot be stored: {_why(error)}") from None
    return encoded


def _packs(value: Any) -> bool:
    try:
        _packer.pack(value)
    except Exception:  # noqa: BLE001 - an object's own code can run here
        _packer.reset()
        return False
    return True


def _why(error: Exception) -> str:
    too_deep = isinstance(error, RecursionError) or "recursion limit" in str(error)
    return "it is nested too deeply, or contains itself" if too_deep else str(error)


decode_plain: Final[Callable[[bytes], Any]] = _decoder.decode
"""The value that `encode_strict` or `encode_any` encoded; tuples are lists from here on."""


pack_strict: Final[Callable[[Any], bytes]] = _packer.pack
"""As `encode_strict`, without its care: after any exception nothing may be packed before `encode_strict` was called,
which raises what is to be raised.
"""


def encode_any(value: Any, what: str, *names: str) -> bytes:
    """Encodes whatever msgspec can (structs, dataclasses, Decimal, …), for places where an annotation converts back.

    `what`, with the dotted `names` behind it, names the thing for the error: `UnsupportedValue`. Sets in it are sorted:
    a set's own order differs between processes, and a replay must not.
    """
    try:
        data = _encoder.encode(value)
        if is_scalar(value) or not holds_set(value):
            return data
        return _encoder.encode(in_order(value))
    except _UNENCODABLE as error:
        raise _unencodable(value, " ".join([what, ".".join(names)]) if names else what, error) from None


def _unencodable(value: Any, place: str, error: Exception) -> UnsupportedValue:
    return UnsupportedValue(f"{place} cannot be encoded: {_why(error)} (value: {shown(value)})")


def holds_sets(declared: Any) -> bool:
    """Whether a value of this type can contain a set; False for what msgspec does not know."""
    if declared in (Any, None, str, int, float, bool, bytes):
        return False  # the usual ones
    try:
        nodes = nodes_of(inspect.type_info(declared))
    except (TypeError, RecursionError):
        return False
    return any(isinstance(node, inspect.SetType | inspect.FrozenSetType) for node in nodes)


class _Look:
    """A look at the parts of a value of the class `kind`, which has fields, as `Settled` says."""

    __slots__ = ("_bounds", "_closer", "_inner", "_items", "_listed", "_other", "_wanted", "kind")

    def __init__(self, certain: Settled) -> None:
        self.kind: Any = certain.kind
        self._wanted: list[Any] = [wanted for wanted, _ in certain.fields or ()]
        self._other: list[Any] = [other for _, other in certain.fields or ()]
        self._items: list[Any] = certain.items
        self._inner: list[_Look | None] = [None if each is None else _Look(each) for each in certain.inner]
        self._listed: list[_Look | None] = [None if each is None else _Look(each) for each in certain.listed]
        self._bounds: list[tuple[int, int] | None] = certain.bounds
        # Of which fields the class alone does not tell.
        self._closer: list[bool] = [
            wanted is list or wanted is datetime or certain.inner[at] is not None or certain.bounds[at] is not None
            for at, wanted in enumerate(self._wanted)
        ]

    def tells(self, value: Any) -> bool:
        """Whether the value comes back unchanged; if not, its decoded form tells."""
        parts: tuple[Any, ...] = _parts_of(value)
        wanted, other, closer = self._wanted, self._other, self._closer
        at = 0
        for item in parts:
            kind = type(item)
            if kind is not wanted[at]:
                if kind is not other[at]:
                    return False
            elif closer[at] and not self._tells_of(at, item):
                return False
            at += 1  # noqa: SIM113 - compiled, a number costs less than a pair
        return True

    def _tells_of(self, at: int, item: Any) -> bool:
        kind = type(item)
        if kind is list:
            return self._tells_of_items(at, item)
        if kind is _DATETIME:
            return item.tzinfo is None or item.tzinfo is UTC  # another time zone has code of its own
        look = self._inner[at]
        if look is not None:
            return look.tells(item)
        bounds = self._bounds[at]
        assert bounds is not None
        number: int = len(item) if kind is str else item
        return bounds[0] <= number <= bounds[1]

    def _tells_of_items(self, at: int, items: list[Any]) -> bool:
        look = self._listed[at]
        if look is None:
            wanted = self._items[at]
            for each in items:
                if type(each) is not wanted:
                    return False
        else:
            wanted = look.kind
            for each in items:
                if type(each) is not wanted or not look.tells(each):
                    return False
        return True


class TypedState:
    """Encoder and decoder of one declared state type; `put` is checked by decoding what was encoded.

    Where a look at a value's types tells that it comes back (`styx.values.settled_types`), it is not decoded.
    A type with sets in it is encoded in sorted order, so that equal states are equal bytes everywhere. `unpack` decodes
    what `encode` or `pack` made; `pack` does not check what it encodes. `named`: what errors call the type.
    """

    __slots__ = (
        "_check_open",
        "_equality_tells",
        "_kind",
        "_look",
        "_named",
        "_type",
        "pack",
        "unpack",
    )

    def __init__(self, state_type: Any, named: str = "state_type") -> None:
        self._type = state_type
        self._named = named
        self._check_open = open_places(state_type)
        self._equality_tells = equality_tells(state_type)
        certain = settled(state_type)
        self._kind: Any = None if certain is None else certain.kind  # None: no value's class
        self._look: _Look | None = None if certain is None or certain.fields is None else _Look(certain)
        self.pack: Callable[[Any], bytes] = _pack_ordered if holds_sets(state_type) else _encoder.encode
        self.unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder(
            state_type, ext_hook=ext_hook, dec_hook=dec_hook
        ).decode

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
        """The state's bytes; raises `UnsupportedValue` for what would not come back as what it is."""
        pack = self.pack
        if type(value) is self._kind:
            try:
                # The look comes first: what it has seen runs no code of its own while it is encoded.
                look = self._look
                if look is None or look.tells(value):
                    return pack(value)
            except Exception:  # noqa: BLE001 - raised again below, and told in a way that helps
                pass
        return self._encoded(value)

    def tells(self, value: Any) -> bool:
        """Whether a look at a Struct tells that it comes back unchanged. False says nothing."""
        look = self._look
        return look is not None and type(value) is self._kind and look.tells(value)

    def _encoded(self, value: Any) -> bytes:
        pack, unpack = self.pack, self.unpack
        try:
            data = pack(value)
        except _UNENCODABLE as error:
            self._refuse_open(value)  # which can say where
            raise _unencodable(value, "the state", error) from None
        try:
            back = unpack(data)
        except msgspec.DecodeError as error:  # of keys that cannot be hashed as well
            told = f"{shown(value)} does not fit the {self._named} {type_text(self._type)}: {error}"
            if value is None:
                told += f"; ctx.delete() removes a state, and `{type_text(self._type)} | None` allows None"
            raise UnsupportedValue(told) from None
        self._refuse_open(value)
        if not (self._equality_tells and _same(value, back)):
            _refuse(lost(value, back))
        return data

    def _refuse_open(self, value: Any) -> None:
        check = self._check_open
        if check is not None:
            _refuse(check(value, ""))


def _pack_ordered(value: Any) -> bytes:
    return _encoder.encode(in_order(value))


def _same(value: Any, back: Any) -> bool:
    try:
        return type(value) is type(back) and bool(value == back)
    except Exception:  # noqa: BLE001 - the state type's own code
        return False


def _refuse(misfit: Misfit | None) -> None:
    if misfit is not None:
        error = UnsupportedValue(misfit.message)
        error.path = misfit.path
        raise error
