"""Types whose encoded form follows from the types of the values, types that it does not follow from, and values of all
kinds to try with both.
"""

from __future__ import annotations

import datetime
import enum
import uuid
import zoneinfo
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")
UTC = datetime.UTC
SUMMER = datetime.timezone(datetime.timedelta(hours=2))
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DOUBTFUL = datetime.datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001 - there are two of them in Berlin


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    RED = "red"


class Switch(enum.Flag):
    ON = 1


class Guessed(enum.Enum):
    ONE = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.ONE


class Valued(enum.Enum):
    ONE = 1

    @property
    def value(self) -> Any:
        return 1


class Unlike(enum.StrEnum):  # noqa: PLW1641 - nobody hashes it
    ONE = "one"

    def __eq__(self, other: object) -> bool:
        return False


class Changed(enum.StrEnum):
    """Is encoded as what it is not found by."""

    ONE = "one"

    def __new__(cls, value: str) -> Changed:
        made = str.__new__(cls, value.upper())
        made._value_ = value
        return made


class Bits(enum.IntFlag):
    ONE = 1


class Alike(enum.StrEnum):
    """Nobody sees by `==` which member came back."""

    ONE = "one"
    TWO = "two"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = enum.StrEnum.__hash__


class Composed(enum.Enum):
    ONE = (1, 2)


class Text(str):
    pass


class Number(int):
    pass


class Listed(list[Any]):
    pass


class Moment(datetime.datetime):
    pass


class Zone(datetime.tzinfo):
    def utcoffset(self, _: Any) -> datetime.timedelta:
        raise LookupError("no offset")

    def dst(self, _: Any) -> None:
        return None

    def tzname(self, _: Any) -> str:
        return "?"


class Flat(msgspec.Struct):
    number: int = 0
    name: str = ""


class Deep(Flat):
    rate: float = 0.0


class Checked(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        if type(self.number) is int and self.number < 0:
            raise ValueError("negative")


class Doubled(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        self.number *= 2


class Unequal(msgspec.Struct):  # noqa: PLW1641 - nobody hashes it
    number: int

    def __eq__(self, other: object) -> bool:
        raise LookupError("no equality")


class Model(msgspec.Struct, eq=False):
    model_fields: ClassVar[dict[str, Any]] = {}
    number: float


class Hidden(msgspec.Struct):
    number: int

    def __getattribute__(self, name: str) -> Any:
        return 7 if name == "number" else super().__getattribute__(name)


class Doubling:
    number: int

    def __post_init__(self) -> None:
        self.number *= 2


class DoubledBehind(msgspec.Struct, Doubling):
    number: int


class Hiding:
    def __getattribute__(self, name: str) -> Any:
        return 7 if name == "number" else super().__getattribute__(name)


class HiddenBehind(msgspec.Struct, Hiding):
    number: int


class Generally(msgspec.Struct, Generic[T]):
    item: T


class Linked(msgspec.Struct):
    next: Linked | None = None


class Around(msgspec.Struct):
    flat: Flat
    deep: Deep | None = None


class Bounded(msgspec.Struct):
    pieces: Annotated[int, msgspec.Meta(ge=0, lt=10)]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=2)] = "a"


class Lines(msgspec.Struct):
    lines: list[Around]
    bounded: list[Bounded] = []


class Placed(Flat):
    number = property(lambda _: 7, lambda _, value: None, lambda _: None)


SETTLED: list[Any] = [
    int,
    str,
    bool,
    float,
    bytes,
    Flat,
    Deep,
    *(
        msgspec.defstruct("One", [("item", kind)], **options)
        for kind in (
            int,
            str,
            bool,
            float,
            bytes,
            datetime.datetime,
            None,
            int | None,
            str | None,
            float | None,
            datetime.datetime | None,
            int | float,
            bool | int,
            bytes | None,
            list[int],
            list[str],
            list[float],
            list[None],
            list[Flat],
            list[Lines],
            Level,
            Word,
            Word | None,
            Annotated[int, msgspec.Meta(ge=0)],
            Annotated[int, msgspec.Meta(gt=-1, le=2**62)],
            None | Annotated[int, msgspec.Meta(ge=1, lt=3)],
            Annotated[str, msgspec.Meta(max_length=3)],
            Annotated[str, msgspec.Meta(min_length=1)] | None,
        )
        for options in ({}, {"array_like": True}, {"tag": "one", "frozen": True}, {"eq": False}, {"rename": "upper"})
    ),
    *(
        msgspec.defstruct("One", [("item", kind)], **options)
        for kind in (
            Flat,
            Deep | None,
            Around,
            Lines,
            Bounded | None,
            msgspec.defstruct("Listing", [("item", list[int])], array_like=True),
        )
        for options in ({}, {"array_like": True}, {"tag": "one", "omit_defaults": True})
    ),
    msgspec.defstruct("Sparing", [("item", int, 1), ("name", str, "x")], omit_defaults=True),
    msgspec.defstruct("Strict", [("item", float, 1.0), ("name", str, "x")], forbid_unknown_fields=True, tag=7),
    msgspec.defstruct("Wrong", [("item", int, "no number"), ("name", str | None, 5)], omit_defaults=True),
    msgspec.defstruct("Made", [("item", int, msgspec.field(default_factory=lambda: 3))], omit_defaults=True),
    msgspec.defstruct("Short", [("item", list[int], msgspec.field(default_factory=list))], omit_defaults=True),
    msgspec.defstruct("Loose", [("item", str, "")], dict=True, weakref=True, kw_only=True),
]
UNSETTLED: list[Any] = [
    Checked,
    Doubled,
    Unequal,
    Model,
    Hidden,
    DoubledBehind,
    HiddenBehind,
    Linked,
    Placed,
    Generally[int],
    datetime.datetime,
    dict[str, int],
    Flat | None,
    Annotated[int, msgspec.Meta(ge=0)],
    *(
        msgspec.defstruct("One", [("item", kind)])
        for kind in (
            Any,
            Annotated[int, msgspec.Meta(multiple_of=2)],
            Annotated[str, msgspec.Meta(pattern="a")],
            Annotated[float, msgspec.Meta(ge=0)],
            Annotated[bytes, msgspec.Meta(max_length=3)],
            Annotated[int, msgspec.Meta(ge=0)] | str,
            Annotated[datetime.datetime, msgspec.Meta(tz=True)],
            Literal[1, "a"],
            Word | Level,
            Switch,
            Guessed,
            Valued,
            Unlike,
            Changed,
            Bits,
            Alike,
            Decimal | None,
            list[Flat] | None,
            list[Flat | None],
            list[list[Flat]],
            list[Checked],
            list[Word],
            Annotated[list[Flat], msgspec.Meta(max_length=1)],
            Flat | int,
            Checked,
            Doubled | None,
            Unequal,
            Model,
            Hidden,
            Linked,
            Placed,
            Generally[int],
            dict[str, Flat],
            msgspec.defstruct("A", [("x", int)], tag="a") | msgspec.defstruct("B", [("x", int)], tag="b"),
            list[int] | None,
            list[int | None],
            list[list[int]],
            list[datetime.datetime],
            list[Any],
            list,
            Annotated[list[int], msgspec.Meta(max_length=1)],
            list[Annotated[int, msgspec.Meta(ge=0)]],
            tuple[int, ...],
            set[str],
            int | str | None,
            datetime.date,
            uuid.UUID,
        )
    ),
]
NUMBERS = (
    0,
    -1,
    1,
    2**53 + 1,
    -(2**63),
    2**63,
    2**64 - 1,
    2**64,
    -(2**63) - 1,
    10**30,
    True,
    False,
    Level.LOW,
    Number(5),
)
FLOATS = (0.0, -0.0, 1.0, 1.5, 1e300, float("inf"), float("nan"), Decimal("1.5"), Decimal("sNaN"), Decimal(1))
TEXTS = (
    "",
    "a",
    "ö\0",
    "\ud800",
    "2026-01-02T03:04:05",
    "2026-01-02",
    Text("a"),
    Word.RED,
    b"",
    b"\xff",
    bytearray(b"a"),
)
TIMES = (
    datetime.datetime.min,  # noqa: DTZ901
    datetime.datetime.max,  # noqa: DTZ901
    datetime.datetime.min.replace(tzinfo=UTC),
    datetime.datetime.max.replace(tzinfo=UTC),
    datetime.datetime.min.replace(tzinfo=SUMMER),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 678_901, SUMMER),
    datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=Zone()),
    DOUBTFUL,
    DOUBTFUL.replace(fold=1),
    DOUBTFUL.replace(tzinfo=BERLIN),
    DOUBTFUL.replace(tzinfo=BERLIN, fold=1),
    DOUBTFUL.replace(tzinfo=datetime.timezone(datetime.timedelta(0), "Z")),
    Moment(2026, 1, 2),
    datetime.date(2026, 1, 2),
)
OTHERS: tuple[Any, ...] = (
    None,
    [],
    [1],
    (1,),
    {},
    {"number": 1},
    {"item": 1},
    {"x": 1},
    set(),
    object(),
    1j,
    msgspec.UNSET,
    int,
)
OTHERS += (Flat(), Deep(1, "a", 1.0), Flat("a"), Checked(1), Linked(Linked()), uuid.UUID(int=1))  # type: ignore[arg-type]
OTHERS += (
    ["a", "b"],
    ["a", 1],
    ["\ud800"],
    [Text("a")],
    [1, True],
    [Number(1)],
    [2**64],
    [1.5, float("nan")],
    [1.5, 1],
    [None],
    [[1]],
    Listed([1]),
    Listed(["a"]),
)
OTHERS += (Bounded(0), Bounded(10), Bounded(1, ""), Bounded(9, "öö"), Bounded(9, "abc"), Bounded(True), Bounded(1.5))  # type: ignore[arg-type]
OTHERS += (Changed.ONE, Valued.ONE, Guessed.ONE, Unlike.ONE, Switch.ON, Switch(0), Composed.ONE)
WRONG: Any = "no number"
OTHERS += ([Flat(), Flat(1, "a")], [Flat(), None], [Flat(), Deep()], [Flat(WRONG)], [Lines([])])
OTHERS += ([Bounded(0), Bounded(10)], Lines([Around(WRONG)]), Lines([Around(Flat(), WRONG)]), Lines(WRONG))
OTHERS += (Lines([Around(Flat())], [Bounded(1)]), Lines([Around(Flat())], [Bounded(-1)]), Lines([Around(Flat(), None)]))
OTHERS += ([Word.RED], 3, 2**62 + 1, 10, "abcd", "öüä")
OTHERS += (Flat(2**64), Flat(1, Text("a")), Around(Flat()), Around(Flat(), Flat()), Around(1))  # type: ignore[arg-type]
USUAL: dict[Any, Any] = {
    int: 1,
    str: "a",
    bool: True,
    float: 1.5,
    bytes: b"a",
    datetime.datetime: DOUBTFUL,
    type(None): None,
    Level: Level.LOW,
    Word: Word.RED,
}
VALUES: tuple[Any, ...] = (*NUMBERS, *FLOATS, *TEXTS, *TIMES, *OTHERS)
