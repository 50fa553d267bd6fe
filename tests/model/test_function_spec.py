"""Two made calls are equal or different, never both: in the compiled form, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from styx import Context, Operator
from styx.model.function_spec import MadeCall

shelf = Operator("shelf")


@shelf.register
async def add(ctx: Context) -> None: ...


@shelf.register
async def take(ctx: Context) -> None: ...


def made(**changed: Any) -> MadeCall:
    fields: dict[str, Any] = {"synchronous": True, "slot": 1, "function": "add", "key": "k", "params": b"\x90"}
    fields |= changed
    return MadeCall(
        fields["synchronous"], fields["slot"], shelf.functions[fields["function"]], fields["key"], fields["params"]
    )


def test_the_same_call_made_twice_is_equal() -> None:
    one, other = made(), made()
    assert one == other
    assert not one != other  # noqa: SIM202 - another method
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    "changed", [{"synchronous": False}, {"slot": 2}, {"function": "take"}, {"key": "l"}, {"params": b"\x91\x01"}]
)
def test_another_call_is_different(changed: dict[str, Any]) -> None:
    one, other = made(), made(**changed)
    assert one != other
    assert not one == other  # noqa: SIM201 - another method


def test_whoever_compares_its_own_way_also_differs_its_own_way() -> None:
    """A Struct without equality has a `__ne__` of its own, which does not ask `__eq__`."""

    def below(kind: type) -> list[type]:
        children: list[type] = kind.__subclasses__()
        return [each for child in children for each in (child, *below(child))]

    def has_own(kind: type, name: str) -> bool:
        method: Callable[..., Any] | None = vars(kind).get(name)
        return getattr(method, "__module__", None) == kind.__module__

    structs = [kind for kind in below(msgspec.Struct) if kind.__module__.startswith("styx.")]
    assert structs
    assert not [kind for kind in structs if has_own(kind, "__eq__") and not has_own(kind, "__ne__")]
