"""Row types that are refused because a stored row would not keep its meaning."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from styx import Operator
from styx.errors import ConfigurationError


class Omitting(msgspec.Struct, omit_defaults=True):
    id: int
    cents: int = 0


class Holder(msgspec.Struct):
    id: int
    inner: list[Omitting] = []


@pytest.mark.parametrize("row_type", [Omitting, Holder])
def test_a_row_is_stored_with_its_defaults(row_type: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Omitting of the row type .* has omit_defaults=True"):
        Operator("shop").table("rows", row_type, key="id")


@pytest.mark.parametrize(("kind", "factory"), [(str, lambda: str(uuid4())), (int, itertools.count().__next__)])
def test_a_default_is_the_same_whenever_it_is_made(kind: Any, factory: Any) -> None:
    row_type: Any = msgspec.defstruct("Made", [("id", int), ("token", kind, msgspec.field(default_factory=factory))])
    with pytest.raises(ConfigurationError, match=r"the default_factory of column 'token' gives another value.*uuid"):
        Operator("shop").table("rows", row_type, key="id")


class Part(msgspec.Struct, eq=False):
    n: int = 1


@dataclass
class Made:
    id: int
    tags: list[str] = field(default_factory=list)
    part: Part = field(default_factory=Part)


def test_a_factory_may_make_a_new_object() -> None:
    assert Operator("shop").table("rows", Made, key="id").columns
