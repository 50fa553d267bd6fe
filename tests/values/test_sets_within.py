"""A set is found wherever it is in a value, because what has one is encoded in another way."""

from __future__ import annotations

import dataclasses
import enum
import gc
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest

from styx.values import sets_within
from styx.values.sets_within import holds_set


class Line(msgspec.Struct):
    tags: Any = None


class Long(Line, array_like=True):
    more: Any = None


@dataclasses.dataclass
class Item:
    tags: Any = None


class Pair(NamedTuple):
    one: Any
    two: Any


class Field(NamedTuple):
    name: str


class Attrs:
    """As classes of attrs are."""

    __attrs_attrs__ = (Field("tags"),)

    def __init__(self, tags: Any) -> None:
        self.tags = tags


class Rows(list[Any]):
    pass


class Tags(frozenset[str]):
    pass


class Color(enum.Enum):
    RED = 1


AROUND = (
    lambda value: value,
    lambda value: [value],
    lambda value: [1, "a", value],
    lambda value: (value, 1),
    lambda value: {"a": value},
    lambda value: OrderedDict(a=1, b=value),
    Line,
    lambda value: Long(1, value),
    Item,
    lambda value: Pair(1, value),
    Attrs,
    lambda value: Rows([1, value]),
    lambda value: [[Line(Item({"a": (value,)}))]],
    lambda value: [Line(), Line(1), Line(value), Line()],
)


@pytest.mark.parametrize("at", range(len(AROUND)))
@pytest.mark.parametrize("found", [set(), {1}, frozenset({"a"}), Tags()])
def test_it_is_found(at: int, found: Any) -> None:
    assert holds_set(AROUND[at](found))


@pytest.mark.parametrize("at", range(len(AROUND)))
@pytest.mark.parametrize("other", [None, 1, "a", 1.5, b"", True, [], (), {}, Color.RED, Decimal(1), datetime.now(UTC)])
def test_what_is_none_is_taken_for_none(at: int, other: Any) -> None:
    assert not holds_set(AROUND[at](other))


def test_a_dictionary_s_keys_are_looked_at() -> None:
    assert holds_set({frozenset({1}): 1})
    assert holds_set({(1, frozenset({1})): 1})
    assert not holds_set({(1, "a"): 1})


class Counted(msgspec.Struct):
    number: int


def test_what_a_field_is_declared_to_be_is_not_believed() -> None:
    wrong: Any = {1}
    assert not holds_set((Counted(1),))
    assert holds_set((Counted(wrong),))
    assert holds_set([Counted(1), Counted(wrong)])


def test_a_class_need_not_be_hashable() -> None:
    class Odd(type):
        __hash__ = None  # type: ignore[assignment]

    kind: Any = Odd("kind", (Item,), {})
    assert holds_set([kind({1})])
    assert not holds_set([kind(1)])


def made_and_gone(number: int) -> bool:
    """Whether a value of a new class, of one of three kinds by its number, is taken for one with a set in it."""
    bases = (Item, Attrs, frozenset)[number % 3]
    value = type(f"Made{number}", (bases,), {})
    return holds_set([value([()]) if number % 2 else value([frozenset()])])


def test_nothing_keeps_a_class_or_is_taken_for_what_is_known_of_another() -> None:
    gc.collect()
    before = len(sets_within._kinds)
    for number in range(600):
        assert made_and_gone(number) == (number % 3 == 2 or number % 2 == 0)
        if number % 50 == 49:
            gc.collect()
            assert len(sets_within._kinds) <= before


def test_nesting_needs_no_stack() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert not holds_set(value)
    while value != 1:  # whose memory is freed level by level
        (value,) = value
