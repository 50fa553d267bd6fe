"""What a typed state would lose or change is refused by name; sets are in the same order in every process."""

from __future__ import annotations

import asyncio
import datetime
import enum
import subprocess
import sys
import uuid
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from styx import App, Context, Operator, TransactionAborted
from styx.errors import UnsupportedValue
from styx.testing import embedded_cluster
from styx.values.codec import TypedState, decode_plain, encode_any

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - without a zone on purpose


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Text(str):
    pass


class Doc(msgspec.Struct):
    meta: dict[str, Any] = {}
    children: list[Doc] = []


class Account(msgspec.Struct):
    balance: int = 0
    owner: str = ""


class Savings(Account):
    rate: float = 0.0


class Bank(msgspec.Struct):
    first: Account
    others: list[Account] = []
    names: list[str] = []
    scores: tuple[float, ...] = ()
    prices: dict[str, Decimal] = {}
    colors: set[Color] = set()


class Point(NamedTuple):
    x: int
    rest: Any


class Form(TypedDict):
    name: str
    note: NotRequired[str]


@dataclass
class Box:
    content: object
    labels: list = field(default_factory=list)  # type: ignore[type-arg]


@dataclass(eq=False)
class Unequal:
    numbers: list[float]


OPEN = [
    (
        {"t": {"b", "a"}},
        ".meta['t']",
        "a set would not come back as one from where any type is allowed: declare set[…]",
    ),
    ({"t": frozenset("a")}, ".meta['t']", "frozenset"),
    ({"a": [1, {"b": (1, 2)}]}, ".meta['a'][1]['b']", "a tuple would not come back as one"),
    ({"d": Decimal("1.5")}, ".meta['d']", "a Decimal would not come back as one"),
    ({"d": NOW}, ".meta['d']", "declare datetime, or give it a time zone"),
    ({"d": NOW.date()}, ".meta['d']", "a date"),
    ({"d": NOW.time()}, ".meta['d']", "a time"),
    ({"d": datetime.timedelta(1)}, ".meta['d']", "a timedelta"),
    ({"d": uuid.UUID(int=1)}, ".meta['d']", "a UUID"),
    ({"d": Color.RED}, ".meta['d']", "a Color"),
    ({"d": Level.LOW}, ".meta['d']", "a Level"),
    ({"d": Text("x")}, ".meta['d']", "a Text"),
    ({"d": Account(1)}, ".meta['d']", "an Account".replace("an ", "a ")),
    ({"d": OrderedDict(a=1)}, ".meta['d']", "OrderedDict"),
    ({"d": defaultdict(int, a=1)}, ".meta['d']", "defaultdict"),
]


@pytest.mark.parametrize(("meta", "path", "told"), OPEN)
def test_what_changes_where_anything_may_stand_is_refused(meta: Any, path: str, told: str) -> None:
    typed = TypedState(Doc)
    for value, place in ((Doc(meta), path), (Doc({}, [Doc(), Doc(meta)]), f".children[1]{path}")):
        with pytest.raises(UnsupportedValue) as refused:
            typed.encode(value)
        assert refused.value.path == place
        assert told in str(refused.value)


@pytest.mark.parametrize(
    ("declared", "value", "path"),
    [
        (Any, {"a", "b"}, ""),
        (object, {"k": Decimal(1)}, "['k']"),
        (dict, {"k": [NOW]}, "['k'][0]"),
        (list, [[], (1,)], "[1]"),
        (tuple, (1, {2}), "[1]"),
        (set, {1, uuid.UUID(int=1)}, None),
        (dict[str, object], {"k": Level.LOW}, "['k']"),
        (dict[str, list[Any]], {"k": [0, Color.RED]}, "['k'][1]"),
        (Point, Point(1, {2}), ".rest"),
        (Box, Box(content=Level.LOW), ".content"),
        (Box, Box(content=1, labels=[Text("x")]), ".labels[0]"),
        (int | dict[str, Any] | None, {"k": {1}}, "['k']"),
        (tuple[int, Any], (1, NOW), "[1]"),
    ],
)
def test_untyped_parts_of_any_type_are_looked_at(declared: Any, value: Any, path: str | None) -> None:
    with pytest.raises(UnsupportedValue) as refused:
        TypedState(declared).encode(value)
    assert path is None or refused.value.path == path


@pytest.mark.parametrize(
    ("declared", "value", "path", "told"),
    [
        (Account, Savings(1, "a", 0.5), "", "a Savings would come back as a Account: declare Savings"),
        (Bank, Bank(Savings(1)), ".first", "a Savings would come back as a Account"),
        (Bank, Bank(Account(), [Account(), Savings()]), ".others[1]", "Savings"),
        (Account, {"ballance": 5}, "", "Account has no field 'ballance'; it has: balance, owner"),
        (Bank, {"first": {"balance": 1}, "others": [{"blance": 2}]}, "['others'][0]", "no field 'blance'"),
        (Form, {"name": "a", "nott": "b"}, "", "no field 'nott'"),
        (Bank, Bank(Account(), names={"b", "a"}), ".names", "a set would come back as a list"),  # type: ignore[arg-type]
        (Account, Account(owner=Decimal("1.5")), ".owner", "a Decimal would come back as a str"),  # type: ignore[arg-type]
        (Account, Account(owner=uuid.UUID(int=1)), ".owner", "a UUID would come back as a str"),  # type: ignore[arg-type]
        (Account, Account(owner=NOW), ".owner", "a datetime would come back as a str"),  # type: ignore[arg-type]
    ],
)
def test_what_a_declared_type_would_lose_is_refused(declared: Any, value: Any, path: str, told: str) -> None:
    with pytest.raises(UnsupportedValue) as refused:
        TypedState(declared).encode(value)
    assert refused.value.path == path
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("declared", "value", "back"),
    [
        (Account, {"balance": 5}, Account(5)),
        (Account, Account(2**63 - 1), None),
        (
            Bank,
            {"first": {"balance": 1}, "scores": [1, 2], "prices": {"a": "1.5"}, "colors": ["red"]},
            Bank(Account(1), scores=(1.0, 2.0), prices={"a": Decimal("1.5")}, colors={Color.RED}),
        ),
        (Bank, Bank(Account(), names=("a", "b")), Bank(Account(), names=["a", "b"])),  # type: ignore[arg-type]
        (Form, {"name": "a"}, {"name": "a"}),
        (Any, {"a": [1, 2.5, None, True, b"x", {"b": "c", 3: 4}], "n": 2**64 - 1}, None),
        (Doc, Doc({"when": NOW.replace(tzinfo=datetime.UTC)}), None),
        (Box, Box(content=[1], labels=["a"]), None),
        (Point, Point(1, [2]), None),
        (frozenset[str], frozenset("ab"), None),
        (float, 3, 3.0),
        (datetime.datetime, NOW, None),
        (list[Color], [Color.RED], None),
        (Account | None, None, None),
    ],
)
def test_what_comes_back_is_taken(declared: Any, value: Any, back: Any) -> None:
    typed = TypedState(declared)
    assert typed.decode(typed.encode(value)) == (value if back is None else back)


def test_what_has_no_equality_is_compared_by_its_parts() -> None:
    typed = TypedState(Unequal)
    assert typed.decode(typed.encode(Unequal([1.0, float("nan")]))).numbers[0] == 1.0
    with pytest.raises(UnsupportedValue, match="Level"):
        typed.encode(Unequal([Level.LOW]))


class ById(msgspec.Struct):
    id: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.id == other.id

    def __hash__(self) -> int:
        return self.id


class ByIdAndMore(ById):
    more: str = ""


@dataclass
class PartlyCompared:
    id: int
    level: int = field(default=0, compare=False)


class Pair(NamedTuple):
    words: set[str]
    number: int = 0


class HiddenModel(pydantic.BaseModel):
    id: int
    _hidden: int = pydantic.PrivateAttr(default=0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiddenModel) and self.id == other.id

    def __hash__(self) -> int:
        return self.id


def test_a_class_with_an_equality_of_its_own_is_compared_by_its_parts() -> None:
    assert TypedState(list[ById]).encode([ById(1)])
    assert TypedState(PartlyCompared).encode(PartlyCompared(1, 2))
    model = HiddenModel(id=1)
    assert TypedState(HiddenModel).encode(model)
    model._hidden = 5
    for declared, value, path in [
        (list[ById], [ById(1), ByIdAndMore(1, "lost")], "[1]"),
        (PartlyCompared, PartlyCompared(1, Level.LOW), ".level"),
        (list[HiddenModel], [model], "[0]"),
    ]:
        with pytest.raises(UnsupportedValue) as refused:
            TypedState(declared).encode(value)
        assert refused.value.path == path


def test_an_integer_that_a_float_has_no_room_for() -> None:
    assert TypedState(dict[str, float]).encode({"a": 2**60})
    with pytest.raises(UnsupportedValue, match=r"1152921504606846977 would come back as 1\.15292") as refused:
        TypedState(dict[str, float]).encode({"a": 2**60 + 1})
    assert refused.value.path == "['a']"


def test_keys_that_could_not_be_read_again() -> None:
    with pytest.raises(UnsupportedValue, match=r"does not fit the state_type .*hashable"):
        TypedState(dict[Pair, int]).encode({Pair(frozenset("a")): 1})  # type: ignore[arg-type]


def test_an_abort_names_entity_and_place() -> None:
    docs = Operator("docs", state_type=Doc)

    @docs.register
    async def write(ctx: Context) -> None:
        await ctx.put(Doc({"t": {"b", "a"}}))

    async def run() -> None:
        async with embedded_cluster(App("docs", [docs])) as cluster:
            with pytest.raises(TransactionAborted) as aborted:
                await cluster.call("docs", "k", "write")
            assert aborted.value.type == "UnsupportedValue"
            assert aborted.value.message.startswith("docs['k'].meta['t']: a set would not come back as one")

    asyncio.run(run())


# Order ---------------------------------------------------------------------------------------------------------


class Holder(msgspec.Struct, frozen=True):
    tags: Any


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"pear", "fig"}, ["fig", "pear"]),
        ([{"x": {3, 1, 2}}], [{"x": [1, 2, 3]}]),
        ({1: frozenset("ba"), "k": 0}, {1: ["a", "b"], "k": 0}),
        ({(1, frozenset("cab")): 0}, {(1, ("a", "b", "c")): 0}),
        ((Holder({"b", "a"}),), [{"tags": ["a", "b"]}]),
        ([Box(content={"z", "y"})], [{"content": ["y", "z"], "labels": []}]),
        ({frozenset("ba"), frozenset("c")}, [["c"], ["a", "b"]]),
        ({1, "a", None}, [None, 1, "a"]),
    ],
)
def test_sets_are_sorted_wherever_they_are(value: Any, expected: Any) -> None:
    data = decode_plain(encode_any(value, "it"))
    assert data == expected or (isinstance(value, set) and sorted(map(str, data)) == sorted(map(str, expected)))


def test_frozen_sets_as_keys_come_back() -> None:
    typed = TypedState(dict[frozenset[str], set[int]])
    value = {frozenset("abcd"): {2, 1}, frozenset(): set()}
    assert typed.decode(typed.encode(value)) == value
    assert b"\x94\xa1a\xa1b\xa1c\xa1d" in typed.encode(value)


def test_a_dictionary_keeps_its_order_beside_a_set() -> None:
    assert list(decode_plain(encode_any({"b": {1}, "a": 2}, "it"))) == ["b", "a"]


@pytest.mark.slow
def test_sets_in_untyped_parts_do_not_depend_on_the_hash_seed() -> None:
    script = """
import asyncio, styx, msgspec
from typing import Any
class State(msgspec.Struct):
    sets: dict[int, set[str]]
bag = styx.Operator("bag", state_type=State)

@bag.register
async def give(ctx, words):
    return words

@bag.register
async def nested(ctx, words: list[str]) -> dict:
    await ctx.put(State({1: set(words), 2: {"z", *words}}))
    return {"deep": [{"set": set(words)}, {frozenset(words), frozenset("xyz")}], "called": await ctx.call(
        bag, give, "other", ({"in": [set(words)]},))}

@bag.register
async def raises(ctx, words: list[str]) -> None:
    raise ValueError({"words": set(words)}, {1, "a"})

@bag.register
async def refused(ctx, words: list[str]) -> None:
    await ctx.put(set(words))

async def main():
    async with styx.embedded(styx.App("bags", [bag])) as client:
        words = ["pear", "apple", "fig", "plum", "lime"]
        for name in ("nested", "raises", "refused"):
            reply = await client.request("bag", "one", name, words)
            print(reply.result, reply.error)
        print(sorted(client.engine.encoded_state().items()))

asyncio.run(main())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }
    assert len(outputs) == 1, outputs
