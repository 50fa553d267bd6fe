"""Types as text: the same where they read the same, in every process, and another one where they do not; and hints."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest

from styx import App, Context, Operator, Retry
from styx.deployment.fingerprint import _told, fingerprint, type_shape
from styx.deployment.package import _fingerprint as package_fingerprint
from styx.schema.description import describe


class Colour(Enum):
    RED = "red"


class Node(msgspec.Struct):
    children: list[Node] = []
    parent: Node | None = None


class Renamed(msgspec.Struct, rename="camel"):
    first_name: str


class Model(pydantic.BaseModel):
    tags: set[str] = {"a", "b", "c", "d"}


class Point(NamedTuple):
    x: int
    y: int = 0


def struct(**fields: Any) -> Any:
    return msgspec.defstruct("State", list(fields.items()))


OTHERS: dict[str, tuple[Any, Any]] = {
    "another type": (struct(n=int), struct(n=float)),
    "another name": (struct(n=int), struct(m=int)),
    "a default": (struct(n=int), msgspec.defstruct("State", [("n", int, 0)])),
    "an array": (struct(n=int), msgspec.defstruct("State", [("n", int)], array_like=True)),
    "a tag": (struct(n=int), msgspec.defstruct("State", [("n", int)], tag=True)),
    "names renamed": (Renamed, struct(first_name=str)),
    "a model's field": (Model, pydantic.create_model("Model", tags=(list[str], []))),
    "an enum's value": (Colour, Enum("Colour", {"RED": "rot"})),
    "a named tuple's default": (Point, tuple[int, int]),
    "no type": (None, Any),
    "items": (list[Decimal], list[float]),
}


@pytest.mark.parametrize("row", OTHERS)
def test_types_that_read_otherwise(row: str) -> None:
    one, other = OTHERS[row]
    assert type_shape(one) != type_shape(other)


def test_types_that_read_alike() -> None:
    assert type_shape(struct(n=int)) == type_shape(struct(n=int))
    assert type_shape(Node).count("StructType") == 1


def test_a_hint_that_no_source_shows() -> None:
    """It may be computed, and decides where a replay's transactions stand."""

    modules = {__name__}
    given: list[dict[str, bool]] = [{}, {"read_only": True}, {"local": True}, {"contended": True}]
    assert fingerprint(_hinted(read_only=True), modules) == fingerprint(_hinted(read_only=True), modules)
    assert len({fingerprint(_hinted(**each), modules) for each in given}) == len(given)
    packed = [package_fingerprint(describe(_hinted(**each)), modules, b"") for each in (*given, {})]
    assert len(set(packed)) == len(given)
    assert packed[0] == packed[-1]


def test_an_app_without_contended_functions_keeps_the_digest_that_it_has() -> None:
    """A release that knew only the two other hints has recorded it. Another digest would say that the code changed."""
    given: list[dict[str, bool]] = [{}, {"read_only": True}, {"local": True}]
    functions = [_hinted(**each).operators["thing"].functions["nothing"] for each in given]
    assert [_told(each) for each in functions] == [(False, False), (True, False), (False, True)]


def _hinted(**hints: bool) -> App:
    thing = Operator("thing")
    thing.register(**hints)(nothing)
    return App("one", [thing])


def test_a_cron_that_no_source_shows() -> None:
    """What is declared has to begin, and what is not has to go."""

    def app(expression: str | None, attempts: int = 5) -> App:
        thing = Operator("thing")
        thing.register(nothing)
        if expression is not None:
            thing.cron(expression, key="a", retry=Retry(attempts))(nothing)
        return App("one", [thing])

    modules = {__name__}
    apps = [app(None), app("0 3 * * *"), app("0 4 * * *"), app("0 3 * * *", 2)]
    assert len({fingerprint(each, modules) for each in apps}) == 4
    assert len({package_fingerprint(describe(each), modules, b"") for each in apps}) == 4
    assert fingerprint(app("0 3 * * *"), modules) == fingerprint(apps[1], modules)


async def nothing(ctx: Context) -> None: ...


def test_the_same_in_every_process() -> None:
    shapes = {
        subprocess.run(
            [sys.executable, "-c", f"from {__name__} import *; print([type_shape(x) for x in (Model, Node, Colour)])"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in "123"
    }
    assert len(shapes) == 1
