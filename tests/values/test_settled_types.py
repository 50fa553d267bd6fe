"""What is encoded after a look at its types alone is taken, or refused, exactly as what is decoded and compared."""

from __future__ import annotations

import enum
import itertools
import random
from typing import Any

import msgspec
import pytest

from styx.errors import UnsupportedValue
from styx.values.codec import TypedState
from styx.values.settled_types import Settled, settled
from tests.values.settled_cases import SETTLED, UNSETTLED, USUAL, VALUES, Around, Deep, Flat


def numbered(kinds: list[Any]) -> list[Any]:
    return [pytest.param(kind, id=f"{number}-{kind}") for number, kind in enumerate(kinds)]


def outcome(encode: Any, value: Any) -> Any:
    try:
        return encode(value)
    except UnsupportedValue as error:
        return error.path, str(error)
    except BaseException as error:  # noqa: BLE001 - an odd value's own
        return type(error), str(error)


def made_of(kind: Any, values: list[Any]) -> Any:
    """A struct as a user can leave one, whatever its fields say: constructors and attributes check nothing."""
    kind = getattr(kind, "__origin__", kind)
    names = kind.__struct_fields__
    made = kind(**dict.fromkeys(names, 0))
    for name, value in zip(names, values, strict=True):
        msgspec.structs.force_setattr(made, name, value)
    return made


def unset(kind: Any) -> Any:
    made = made_of(kind, [1] * fields_of(kind))
    if not kind.__struct_config__.frozen:
        delattr(made, kind.__struct_fields__[0])
    return made


def fields_of(kind: Any) -> int:
    return len(getattr(getattr(kind, "__origin__", kind), "__struct_fields__", ()))


def all_values(kind: Any) -> list[Any]:
    values = list(VALUES)
    count = fields_of(kind)
    if count == 1:
        values += [made_of(kind, [value]) for value in VALUES]
    elif count:
        rng = random.Random(7)
        some = rng.choices(VALUES, k=40)
        values += [made_of(kind, list(each)) for each in itertools.islice(itertools.product(some, repeat=count), 1_600)]
        values += [made_of(kind, rng.choices((0, "a", 1.5), k=count)) for _ in range(50)]
    if count:
        actual = getattr(kind, "__origin__", kind)
        values.append(unset(actual))
        extended = msgspec.defstruct("Below", [("more", int, 1)], bases=(actual,), kw_only=True)
        values.append(made_of(extended, [*[1] * count, 1]))
    return values


def usual(certain: Settled, at: int) -> Any:
    """A value that meets the condition: with the first of its kinds, or the second."""
    if certain.fields is None:
        return USUAL[certain.kind]
    parts: list[Any] = []
    for number, kinds in enumerate(certain.fields):
        item, inner, listed = certain.items[number], certain.inner[number], certain.listed[number]
        if item is not None:
            parts.append([USUAL[item]] * at)
        elif listed is not None:
            parts.append([usual(listed, at)] * at)
        elif inner is not None and kinds[at] is inner.kind:
            parts.append(usual(inner, at))
        else:
            parts.append(USUAL[kinds[at]])
    return made_of(certain.kind, parts)


def is_settled(typed: TypedState, value: Any) -> bool:
    return type(value) is typed._kind and (typed._look is None or typed._look.tells(value))


@pytest.mark.parametrize("declared", numbered(SETTLED + UNSETTLED))
def test_it_is_taken_or_refused_as_if_it_were_decoded_and_compared(declared: Any) -> None:
    typed = TypedState(declared)
    for value in all_values(declared):
        assert outcome(typed.encode, value) == outcome(typed._encoded, value)


@pytest.mark.parametrize("declared", numbered(SETTLED))
def test_usual_values_are_settled_by_their_types(declared: Any) -> None:
    certain = settled(declared)
    assert certain is not None
    typed = TypedState(declared)
    for at in (0, 1):
        value = usual(certain, at)
        assert is_settled(typed, value)
        assert typed.encode(value) == typed._encoded(value)


@pytest.mark.parametrize("declared", numbered(UNSETTLED))
def test_other_types_are_decoded_and_compared(declared: Any) -> None:
    assert settled(declared) is None


def test_a_value_that_changes_while_it_is_encoded_is_not_trusted() -> None:
    class Sly(enum.Enum):
        A = 1

    flat = Flat(Sly.A, "a")  # type: ignore[arg-type]
    typed = TypedState(Flat)
    assert not is_settled(typed, flat)
    assert outcome(typed.encode, flat) == outcome(typed._encoded, flat)


def test_the_struct_within_is_looked_at_as_the_one_around_it() -> None:
    typed = TypedState(Around)
    assert is_settled(typed, Around(Flat(1, "a"), Deep(1, "a", 1.0)))
    assert not is_settled(typed, Around(Flat("1", "a")))  # type: ignore[arg-type]
    assert not is_settled(typed, Around(Deep(1, "a", 1.0)))  # its rate would be lost
    with pytest.raises(UnsupportedValue):
        typed.encode(Around(Flat("1", "a")))  # type: ignore[arg-type]
