"""A table of types that apps declare: taken, and then they work; or refused where they are declared."""

from __future__ import annotations

import asyncio
import collections
import collections.abc as abc
import datetime
import decimal
import enum
import typing
import uuid
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Operator
from styx.testing import embedded_cluster
from styx.values.codec import TypedState
from styx.values.declared_types import check_declared, check_result

T = TypeVar("T")
UserId = NewType("UserId", int)


class Kind(enum.Enum):
    A = "a"


class Flag(enum.IntEnum):
    ON = 1


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Form(TypedDict, total=False):
    name: str
    inner: dict[str, int]


class Node(msgspec.Struct):
    value: int
    next: Optional[Node] = None  # noqa: UP045 - as many write it
    children: list[Node] = []


class Box(msgspec.Struct, Generic[T]):
    content: T


class Cat(msgspec.Struct, tag="cat"):
    name: str


class Dog(msgspec.Struct, tag="dog"):
    name: str


@dataclass
class Data:
    items: list[Point] = field(default_factory=list)
    forward: Later | None = None


@dataclass
class Later:
    n: int


@dataclass(frozen=True)
class Frozen:
    n: int


class Plain:
    pass


class Protocol(typing.Protocol):
    def f(self) -> int: ...


TAKEN: list[tuple[Any, Any]] = [
    (abc.Mapping[str, int], {"a": 1}),
    (abc.MutableMapping[str, abc.Sequence[int]], {"a": [1]}),
    (abc.Sequence[int], [1, 2]),
    (abc.Collection[str], ["a"]),
    (abc.Set[int], {1}),
    (typing.Mapping, {"a": [1]}),
    (typing.List[int], [1]),  # noqa: UP006 - as many write it
    (UserId, 5),
    (list[UserId], [5]),
    (Form, {"name": "x", "inner": {"a": 1}}),
    (Point, Point(1, 2.0)),
    (Kind, Kind.A),
    (dict[Kind, int], {Kind.A: 1}),
    (Flag, Flag.ON),
    (Literal["a", 1, None], "a"),
    (Node, Node(1, Node(2), [Node(3)])),
    (Box[int], Box(5)),
    (Box[list[Point]], Box([Point(1)])),
    (Cat | Dog, Dog("rex")),
    (Data, Data([Point(1)], Later(2))),
    (Union[int, str, None], "x"),  # noqa: UP007 - as many write it
    (decimal.Decimal, decimal.Decimal("1.50")),
    (uuid.UUID, uuid.UUID(int=5)),
    (datetime.date, datetime.date(2026, 1, 1)),
    (datetime.time, datetime.time(1, 2)),
    (datetime.timedelta, datetime.timedelta(seconds=5)),
    (bytes, b"\x00"),
    (bytearray, bytearray(b"\x00")),
    (dict[tuple[int, str], int], {(1, "a"): 2}),
    (dict[int, Frozen], {1: Frozen(2)}),
    (frozenset[tuple[int, str]], frozenset({(1, "a")})),
    (set[Frozen], {Frozen(1)}),
    (tuple[int, ...], (1, 2)),
    (tuple[()], ()),
    (Annotated[int, msgspec.Meta(gt=0)], 1),
    (Any, {"a": [1]}),
    (object, {"a": [1]}),
    (None, None),
]

REFUSED: list[tuple[Any, str]] = [
    (Plain, "'Plain' is a plain class, which styx cannot convert"),
    (list[dict[str, Plain]], "'Plain' is a plain class"),
    (Box[Plain], "'Plain' is a plain class"),
    (collections.defaultdict, "'defaultdict' cannot be converted to: declare dict"),
    (collections.defaultdict[str, int], "'defaultdict' cannot be converted to: declare dict"),
    (dict[str, collections.deque[int]], "'deque' cannot be converted to: declare list"),
    (collections.OrderedDict[str, int], "'OrderedDict' cannot be converted to: declare dict"),
    (typing.Counter[str], "'Counter' cannot be converted to"),
    (complex, "'complex' cannot be converted to"),
    (abc.Iterable[int], "says too little"),
    (abc.Callable[[int], int], "says too little"),
    (abc.Hashable, "says too little"),
    (Protocol, "says too little"),
    (type, "says too little"),
    (Exception, "plain class|says too little"),
    (Cat | Node, "multiple Struct types"),
    (list[int] | tuple[int, ...], "more than one array-like"),
    (int | Plain, "custom type"),
    (Literal[1.5], "Literal"),
    (set[list[int]], "an item of a set has to be hashable, and a list is not"),
    (set[Data], "an item of a set has to be hashable, and a Data is not"),
    (dict[Node, int], "a key of a dict has to be hashable, and a Node is not"),
    (ForwardRef("Node"), "not supported"),
    (typing.ClassVar[int], "not supported"),
    (typing.Self, "not supported"),
]


@pytest.mark.parametrize(("declared", "value"), TAKEN, ids=[str(each) for each, _ in TAKEN])
def test_what_is_taken_comes_back(declared: Any, value: Any) -> None:
    check_declared(declared)
    typed = TypedState(declared)
    back = typed.decode(typed.encode(value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(("declared", "told"), REFUSED, ids=[str(each) for each, _ in REFUSED])
def test_what_could_only_fail_later_is_refused(declared: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        check_declared(declared)


@pytest.mark.parametrize(
    "declared",
    [
        typing.NoReturn,
        abc.Iterable[int],
        abc.Iterator[int],
        collections.OrderedDict[str, int],
        Cat | Node,
        Protocol,
        None,
    ],
)
def test_a_result_may_be_declared_more_loosely(declared: Any) -> None:
    check_result(declared)


def test_a_plain_class_is_no_result() -> None:
    with pytest.raises(ConfigurationError, match="'Plain' is a plain class"):
        check_result(dict[str, Plain])


def test_parameters_of_these_types_arrive_as_such() -> None:
    operator = Operator("o")

    @operator.register
    async def f(
        ctx: Context, users: list[UserId], form: Form, points: abc.Sequence[Point], anything: object, later: Data
    ) -> str:
        assert isinstance(points[0], Point)
        assert isinstance(later.forward, Later)
        return f"{users} {form} {anything}"

    @operator.register
    async def g(ctx: Context) -> Any:
        given = ([UserId(1)], {"name": "x"}, [Point(1)], {"a": 1}, Data(forward=Later(1)))
        return await ctx.call(operator, f, "k", given)

    async def run() -> None:
        async with embedded_cluster(App("a", [operator])) as cluster:
            assert await cluster.call("o", "k", "g") == "[1] {'name': 'x'} {'a': 1}"

    asyncio.run(run())
