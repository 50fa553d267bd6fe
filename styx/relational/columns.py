"""The columns of a row type: what type each has, and its *comparable*, by which rows are looked up and put in order.

A comparable is a value that Python orders totally, with equality and hash that agree with the column's: the number of
a day for a date, the microseconds since 1970 for a time, an enum's value. A column that may be None has `()` for None
and `(comparable,)` for all else, so that None comes first. Comparables of key columns are texts and whole numbers, as
the keys of entities are.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import GenericAlias
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import inspect

from styx.errors import BadQuery, UnsupportedValue
from styx.model.limits import KEY_BYTES_MAX
from styx.values.codec import shown

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - naive, as the column's values are
_MICROSECOND: Final = timedelta(microseconds=1)
_SHORT_TEXT_CHARS: Final = KEY_BYTES_MAX // 4
_NAN: Final = "NaN has no place in an order"
_NONE: Final = ()
"""The comparable of None."""


class Kind:
    """How the values of one type are compared. `of` gives the comparable, `back` the value of a key's comparable.

    `classes`: a value is of exactly one of them. `compared_as`: the class of comparables. `plain`: a value is its own
    comparable. `in_keys`: comparables are texts or whole numbers. `prefixes`: values have prefixes. `may_refuse`: `of`
    raises `UnsupportedValue` for what has no order.
    """

    __slots__ = ("back", "classes", "compared_as", "in_keys", "may_refuse", "name", "of", "plain", "prefixes")

    def __init__(
        self,
        name: str,
        classes: tuple[type, ...],
        compared_as: type,
        of: Callable[[Any], Any] | None = None,
        back: Callable[[Any], Any] | None = None,
        *,
        in_keys: bool = False,
        prefixes: bool = False,
    ) -> None:
        self.name = name
        self.classes = classes
        self.compared_as = compared_as
        self.plain = of is None
        self.of: Callable[[Any], Any] = of or _same
        self.back: Callable[[Any], Any] = back or _same
        self.in_keys = in_keys
        self.prefixes = prefixes
        self.may_refuse = of in (_float, _decimal, _aware, _naive)


def _same(value: Any) -> Any:
    return value


def _float(value: Any) -> Any:  # a query can ask for an int, which compiled code would round, or refuse if it is large
    if value != value:
        raise UnsupportedValue(_NAN)
    return value


def _decimal(value: Any) -> Any:
    if type(value) is Decimal and value.is_nan():
        raise UnsupportedValue(_NAN)
    return value


def _aware(value: datetime) -> int:
    if value.tzinfo is None:
        raise UnsupportedValue(
            f"{shown(value)} has no time zone: give it one, such as UTC, or declare the column as "
            "Annotated[datetime, msgspec.Meta(tz=False)]"
        )
    return (value - _EPOCH) // _MICROSECOND


def _aware_back(number: int) -> datetime:
    return _EPOCH + number * _MICROSECOND


def _naive(value: datetime) -> int:
    if value.tzinfo is not None:
        raise UnsupportedValue(f"{shown(value)} has a time zone, and the column's values have none")
    return (value - _NAIVE_EPOCH) // _MICROSECOND


def _naive_back(number: int) -> datetime:
    return _NAIVE_EPOCH + number * _MICROSECOND


_KINDS: Final[dict[type[inspect.Type], Kind]] = {
    inspect.IntType: Kind("int", (int,), int, in_keys=True),
    inspect.StrType: Kind("str", (str,), str, in_keys=True, prefixes=True),
    inspect.BoolType: Kind("bool", (bool,), int, int, bool, in_keys=True),
    inspect.BytesType: Kind("bytes", (bytes,), bytes, prefixes=True),
    inspect.FloatType: Kind("float", (float, int), float, _float),
    inspect.DecimalType: Kind("Decimal", (Decimal, int), Decimal, _decimal),
    inspect.DateType: Kind("date", (date,), int, date.toordinal, date.fromordinal, in_keys=True),
    inspect.UUIDType: Kind("UUID", (UUID,), str, str, UUID, in_keys=True),
}
_AWARE: Final = Kind("datetime", (datetime,), int, _aware, _aware_back, in_keys=True)
_NAIVE: Final = Kind("naive datetime", (datetime,), int, _naive, _naive_back, in_keys=True)


def _enum_value(member: Any) -> Any:
    return member.value


def _kind_of(node: Any) -> Kind | None:
    """The kind of a type's values, None if they have no order."""
    if isinstance(node, inspect.Metadata):
        return _kind_of(node.type)
    if isinstance(node, inspect.DateTimeType):
        return _NAIVE if node.tz is False else _AWARE
    if isinstance(node, inspect.LiteralType):
        return _of_values({type(value) for value in node.values})
    if isinstance(node, inspect.EnumType):
        values = _of_values({type(member.value) for member in node.cls})
        if values is None:
            return None
        cls: type[enum.Enum] = node.cls
        return Kind(f"{values.name} enum {cls.__name__}", (cls,), values.compared_as, _enum_value, cls, in_keys=True)
    return _KINDS.get(type(node))


def _of_values(classes: set[type]) -> Kind | None:
    if classes == {int}:
        return _KINDS[inspect.IntType]
    return _KINDS[inspect.StrType] if classes == {str} else None


class Column:
    """One column: a field of the row type. `kind` is None if its values have no order: then it is in no index. So it is
    with one that `may_be_unset`, which `msgspec.inspect` does not tell: `msgspec.UNSET` is neither less nor more than a
    value, and cannot be added up.
    """

    __slots__ = ("kind", "may_be_unset", "name", "optional")

    def __init__(self, name: str, declared: inspect.Type, may_be_unset: bool = False) -> None:
        node: Any = declared.type if isinstance(declared, inspect.Metadata) else declared
        self.name = name
        self.may_be_unset = may_be_unset
        self.optional = False
        if isinstance(node, inspect.UnionType):
            rest = [each for each in node.types if not isinstance(each, inspect.NoneType)]
            self.optional = len(rest) < len(node.types)
            node = rest[0] if len(rest) == 1 else node
        self.kind = None if may_be_unset else _kind_of(node)

    def __repr__(self) -> str:
        return f"Column({self.name!r})"

    @property
    def type_name(self) -> str:
        """As messages name it: columns of one name can be compared."""
        if self.kind is None:
            return "a type that allows UNSET" if self.may_be_unset else "a type without an order"
        return self.kind.name

    @property
    def plain(self) -> bool:
        """Whether each value is its own comparable."""
        return self.kind is not None and self.kind.plain and not self.optional

    @property
    def comparable_type(self) -> Any:
        """The type of its comparables, for msgspec to decode."""
        assert self.kind is not None, "a declaration of an index checks it"
        return GenericAlias(list, self.kind.compared_as) if self.optional else self.kind.compared_as

    def stored(self, value: Any) -> Any:
        """The comparable of a row's value; raises `UnsupportedValue` for one that has no order."""
        kind = self.kind
        assert kind is not None, "a declaration of an index checks it"
        if self.optional:
            return _NONE if value is None else (kind.of(value),)
        return kind.of(value)

    def asked(self, value: Any) -> Any:
        """The comparable of a value that a query compares the column with; raises `BadQuery`."""
        if value is None and self.optional:
            return _NONE
        bare = self.bare(value)
        return (bare,) if self.optional else bare

    def bare(self, value: Any) -> Any:
        """The comparable of a value other than None, as if the column could not be None; raises `BadQuery`."""
        kind = self.kind
        if kind is None:
            raise BadQuery(f"column {self.name!r} is of {self.type_name}: it can only be compared with one value")
        if type(value) not in kind.classes:
            raise BadQuery(
                f"column {self.name!r} is of type {kind.name}, and was compared with {shown(value)} of type "
                f"{type(value).__name__}"
            )
        try:
            return kind.of(value)
        except UnsupportedValue as error:
            raise BadQuery(f"column {self.name!r}: {error}") from None

    def key_part(self, value: Any) -> str | int:
        """A part of a primary key, of a value that a caller gives; raises `BadQuery`."""
        part: str | int = self.bare(value)
        if type(part) is str:
            if len(part) > _SHORT_TEXT_CHARS or not part.isascii():
                self._check_text(part)
        elif not -(2**63) <= part < 2**63:  # type: ignore[operator]  # no str is left
            raise BadQuery(f"column {self.name!r} is part of the primary key, and {part} does not fit 64 bits")
        return part

    def of_json(self, told: Any) -> Any:
        """The value of a column of a primary key that JSON has: a time, for example, is text there. Raises
        `msgspec.ValidationError`.
        """
        return told if self.kind is None or self.plain else msgspec.convert(told, self.kind.classes[0])

    def _check_text(self, text: str) -> None:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise BadQuery(f"column {self.name!r}: {shown(text)} is not valid Unicode") from None
        if size > KEY_BYTES_MAX:
            raise BadQuery(
                f"column {self.name!r} is part of the primary key, and has {size} bytes; the limit is {KEY_BYTES_MAX}"
            )

    def from_part(self, part: Any) -> Any:
        """The column's value, from the row's key."""
        kind = self.kind
        assert kind is not None, "a declaration of a key checks it"
        return kind.back(part)
