"""The published schema of an event: the same for the same values, and one version has one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx import Event
from styx.schema.event_description import canonical, describe_events, published_of, refusal_of_events


class Part(msgspec.Struct):
    """Of one thing."""

    name: str


class Piece(msgspec.Struct):
    """Another name and other words."""

    name: str


class Before(msgspec.Struct):
    amount: int
    parts: list[Part] = []


class Renamed(msgspec.Struct):
    amount: int
    parts: list[Piece] = []


class Wider(msgspec.Struct):
    amount: int
    parts: list[Part] = []
    at: datetime | None = None


class Other(msgspec.Struct):
    amount: Decimal
    parts: list[Part] = []


class Fewer(msgspec.Struct):
    parts: list[Part] = []


class Node(msgspec.Struct):
    title: str
    next: Node | None = None


@dataclass
class Plain:
    amount: int


def _described(declared: Any, version: int = 1) -> Any:
    return describe_events({"paid": Event("paid", declared, version=version)})


def test_names_and_words_of_people_do_not_count() -> None:
    assert canonical(Before) == canonical(Renamed)
    assert canonical(Plain) == canonical(Plain)


@pytest.mark.parametrize("declared", [Wider, Other, Fewer, Plain, dict[str, int], int, str])
def test_another_type_has_another_schema(declared: Any) -> None:
    assert canonical(declared) != canonical(Before)


def test_a_type_that_contains_itself_has_one() -> None:
    assert canonical(Node) == canonical(Node)
    assert '"title"' in canonical(Node), "a field may have the name of what does not count"


@pytest.mark.parametrize("declared", [Wider, Other, Fewer])
def test_a_changed_type_with_the_same_version_is_refused(declared: Any) -> None:
    published = published_of(_described(Before))
    told = refusal_of_events(published, _described(declared))
    assert told is not None
    assert "declare it as Event('paid', …, version=2)" in told
    assert refusal_of_events(published, _described(declared, 2)) is None


def test_the_same_type_is_accepted_again() -> None:
    published = published_of(_described(Before))
    assert refusal_of_events(published, _described(Renamed)) is None
    assert refusal_of_events(published, {}) is None
    assert refusal_of_events({}, _described(Other, 7)) is None


def test_an_earlier_version_may_come_again_as_it_was() -> None:
    published = published_of(_described(Other, 2), published_of(_described(Before)))
    assert refusal_of_events(published, _described(Before)) is None
    assert "version=3" in str(refusal_of_events(published, _described(Wider)))
    later = published_of(_described(Before, 5))
    assert "version 5 was deployed" in str(refusal_of_events(later, _described(Other, 3)))
