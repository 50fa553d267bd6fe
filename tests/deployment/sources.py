"""Sources of apps that use whatever Python has, for tests that run them where the sources are not."""

from __future__ import annotations

MODELS = """
from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, NewType, Protocol, TypedDict, TypeVar

import msgspec

T = TypeVar("T")
Cents = NewType("Cents", int)
Positive = Annotated[int, msgspec.Meta(gt=0)]


class Planet(enum.Enum):
    EARTH = (1, "blue")
    MARS = (2, "red")
    TERRA = (1, "blue")

    def __init__(self, place: int, colour: str) -> None:
        self.colour = colour

    @property
    def title(self) -> str:
        return f"{self.name.title()} is {self.colour}"


class Level(enum.IntEnum):
    LOW = enum.auto()
    HIGH = enum.auto()

    @classmethod
    def top(cls) -> Level:
        return max(cls)


class Kind(enum.StrEnum):
    GOOD = "good"
    BAD = "bad"


class Right(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    ALL = READ | WRITE


class Money(msgspec.Struct, frozen=True, order=True):
    cents: Positive
    kind: Kind = Kind.GOOD
    limit: ClassVar[int] = 1000

    def __post_init__(self) -> None:
        if self.cents > self.limit:
            raise TooMuch(self.cents)

    def plus(self, other: Money) -> Money:
        return Money(self.cents + other.cents)

    @property
    def whole(self) -> bool:
        return self.cents % 100 == 0

    @classmethod
    def penny(cls) -> Money:
        return cls(1)

    @staticmethod
    def sign() -> str:
        return SIGN


Money.ONE = Money(100)


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []
    parent: Tree | None = None

    def size(self) -> int:
        return 1 + sum(child.size() for child in self.children)


class Base(msgspec.Struct, kw_only=True, rename="camel", tag_field="is"):
    item_name: str
    item_count: int = msgspec.field(default=0, name="n")

    def label(self) -> str:
        return f"<{self.item_name}>"


class Left(Base, tag="left"):
    def label(self) -> str:
        return "left " + super().label()


class RightOne(Base, tag=True, kw_only=False):
    extra: dict[str, Any]


class Box(msgspec.Struct, Generic[T], array_like=True):
    content: T


@dataclasses.dataclass(order=True)
class Line:
    text: str
    price: Money
    numbers: list[int] = dataclasses.field(default_factory=list)
    level: Level = Level.LOW

    def __post_init__(self) -> None:
        self.text = self.text.strip()


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


class Row(TypedDict, total=False):
    left: Money
    right: list[Row]


class Pair(NamedTuple):
    first: int
    second: Money = Money(2)

    def total(self) -> int:
        return self.first + self.second.cents


class Shape(abc.ABC):
    registry: ClassVar[dict[str, type]] = {}

    def __init_subclass__(cls) -> None:
        Shape.registry[cls.__name__] = cls

    @abc.abstractmethod
    def area(self) -> int: ...


class Square(Shape):
    __slots__ = ("side",)

    def __init__(self, side: int) -> None:
        self.side = side

    def area(self) -> int:
        return self.side ** 2

    def __iter__(self) -> Iterator[int]:
        yield from range(self.side)


class HasArea(Protocol):
    def area(self) -> int: ...


class Problem(Exception):
    def __init__(self, text: str, *, code: int = 7) -> None:
        super().__init__(text)
        self.code = code


class TooMuch(Problem, ValueError):
    def __init__(self, cents: int) -> None:
        super().__init__(f"{cents} is too much", code=8)


class State(msgspec.Struct):
    money: Money
    planet: tuple[int, str] = (1, "blue")
    lines: list[Line] = []
    tree: Tree | None = None
    parts: list[Left | RightOne] = []
    box: Box[Money] | None = None
    row: Row = {}
    pair: Pair | None = None
    point: Point = Point(1)
    levels: dict[Level, Kind] = {}
    cents: Cents = Cents(0)


SIGN = "$"
DEFAULT = State(Money(5), lines=[Line(" a ", Money.ONE)])
TREE = msgspec.json.Decoder(Tree)
JSON = msgspec.json.Encoder(order="sorted")
"""

HELPERS = """
import functools
import math

from . import models
from .models import Problem, TooMuch

CALLS = {"made": 0}


def loud(word):
    def decorate(function):
        @functools.wraps(function)
        async def wrapper(ctx, *args, **named):
            return f"{word}: {await function(ctx, *args, **named)}"

        return wrapper

    return decorate


@functools.cache
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def adder(by):
    return lambda value: value + by


plus_two = adder(2)
plus_half = functools.partial(math.pow, 4)


def checked(cents):
    try:
        return models.Money(cents)
    except TooMuch as error:
        assert isinstance(error, Problem) and isinstance(error, ValueError)
        raise
"""

LAZY = """
from . import models

def square(side):
    return models.Square(side)

LOADED = "lazily"
"""

APP = """
from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import msgspec

from styx import App, Context, Operator

from . import helpers, lazy
from .models import DEFAULT, JSON, TREE, Box, Kind, Level, Line, Money, Pair, Planet, Point, Right, RightOne, Row
from .models import Left, Shape, Square, State, Tree
from .visits import plain, visit

thing = Operator("thing", 3, key_type=(str, int), state_type=State, partition_key=lambda key: key[0].upper())
shelf = Operator("shelf", state_type=Row)


@thing.register
async def open(ctx: Context, money: Money, lines: list[Line] | None = None, when: datetime | None = None) -> State:
    state = State(money, lines=lines or DEFAULT.lines, levels={Level.HIGH: Kind.BAD}, box=Box(Money(3)))
    state.tree = TREE.decode(b'{"name": "root", "children": [{"name": "leaf"}]}')
    state.parts = [Left(item_name="l"), RightOne({"a": 1}, item_name="r", item_count=4)]
    state.row = {"left": Money(9), "right": [{"left": Money(8)}]}
    state.pair = Pair(1)
    await ctx.put(state)
    return await ctx.get()


@thing.register
async def look(ctx: Context) -> list[object]:
    state = await ctx.get()
    import struct

    from .lazy import LOADED, square
    from . import lazy as sluggish
    import everything.lazy
    import everything.lazy as again

    assert everything.lazy is again is sluggish is lazy, "one module"
    return [
        state.money.plus(Money.ONE).cents, state.money.whole, Money.penny().cents, Money.sign(), Money.limit,
        state.tree.size(), [part.label() for part in state.parts], type(state.parts[1]).__name__,
        state.lines[0].text, state.lines[0] < Line("b", Money(1)), state.lines[0].level.top().name,
        state.pair.total(), state.point == Point(1), hash(state.point) == hash(Point(1)),
        helpers.factorial(5), helpers.plus_two(1), helpers.plus_half(0.5),
        list(square(3)), square(2).area(), LOADED, sorted(Shape.registry), isinstance(square(1), Shape),
        Planet.MARS.title, Planet.TERRA is Planet.EARTH, Planet((2, "red")) is Planet.MARS,
        (Right.READ | Right.WRITE) is Right.ALL, Level(2) is Level.HIGH, isinstance(Kind.GOOD, str),
        JSON.encode({"b": 1, "a": state.money}).decode(), struct.calcsize("i"),
        thing.name, app.name, list(app.operators), look.__name__,
    ]


@thing.register
async def spend(ctx: Context, cents: int) -> int:
    return helpers.checked(cents).cents


@shelf.register
async def fill(ctx: Context, row: Row) -> Row:
    await ctx.put(row)
    return await ctx.get()


@shelf.register
async def ask(ctx: Context) -> str:
    return await ctx.call(plain, visit, key="x", params=(Kind.GOOD, Decimal("1.5")))


app = App("everything", operators=[thing, plain, shelf])
"""

VISITS = """
from decimal import Decimal

from styx import Context, Operator

from .helpers import loud
from .models import Kind

plain = Operator("plain", state_type=Kind)


@plain.register
@loud("oh")
async def visit(ctx: Context, kind: Kind, price: Decimal) -> str:
    await ctx.put(kind)
    before = await ctx.get()
    return f"{before.name}, {price + 1}, {before is kind}"
"""

EVERYTHING = {
    "everything/__init__.py": "from .app import app\n",
    "everything/models.py": MODELS,
    "everything/helpers.py": HELPERS,
    "everything/lazy.py": LAZY,
    "everything/visits.py": VISITS,
    "everything/app.py": APP,
}
