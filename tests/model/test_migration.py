"""How `migrate=` may be declared."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from styx import Operator
from styx.errors import ConfigurationError


def of_dict(old: dict[str, int]) -> int:
    return old["n"]


def with_more(old: Any, more: int = 1) -> int:
    return more


async def waits(old: Any) -> int:
    return 1


def two(old: Any, new: Any) -> int:
    return 1


def nothing() -> int:
    return 1


def unknown(old: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    return 1


def no_state(old: set[int] | list[int]) -> int:
    return 1


@pytest.mark.parametrize("function", [of_dict, with_more, lambda old: 1, partial(with_more, more=2)])
def test_plain_functions_of_one_argument(function: Any) -> None:
    migration = Operator("acc", state_type=int, migrate=function).migration
    assert migration is not None
    assert migration.decode(b"\x81\xa1n\x05") == {"n": 5}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (waits, "must be a plain function"),
        (two, "must take one argument"),
        (nothing, "must take one argument"),
        (unknown, "annotations cannot be resolved"),
        (no_state, "takes "),
        (dict, "is not a function"),
        (5, "is not a function"),
    ],
)
def test_what_could_only_fail_later_is_refused(function: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Operator("acc", state_type=int, migrate=function)


def test_it_needs_a_type() -> None:
    with pytest.raises(ConfigurationError, match="needs a state_type"):
        Operator("acc", migrate=of_dict)
