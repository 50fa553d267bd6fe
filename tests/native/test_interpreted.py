"""Which Structs set their attributes the plain way, and that none of them escapes the garbage collector."""

from __future__ import annotations

import gc

import msgspec
import pytest

from styx import App, Operator
from styx.model.limits import Limits
from styx.native.compiled import transaction_limits
from styx.native.interpreted import plain_stores
from styx.state.table import Table
from styx.worker.footprint import EntityCell, Footprint
from styx.worker.invocation import Invocation
from styx.worker.root import RootTransaction

entity = Operator("entity")


@entity.register
async def nothing(ctx: object) -> None:
    pass


def footprint() -> Footprint:
    return Footprint(App("app", [entity]), transaction_limits(Limits()), 1, 1, 0, 0, 0, False, False, None)


@plain_stores
class Plain(msgspec.Struct, gc=False):
    number: int = 0


def test_attributes_are_set_and_unknown_ones_refused() -> None:
    plain = Plain()
    plain.number = 3
    assert plain == Plain(3)
    with pytest.raises(AttributeError):
        plain.other = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("cls", [Plain, EntityCell, Footprint, Invocation, RootTransaction])
def test_the_short_way_is_taken(cls: type) -> None:
    for name in ("__setattr__", "__delattr__"):
        assert getattr(cls, name) is getattr(object, name)


def test_what_the_collector_must_know_is_known_from_its_making() -> None:
    here = footprint()
    cell = EntityCell(here, "key", Table({}, -1).reader(-1))
    assert gc.is_tracked(here)
    nothing = entity.functions["nothing"]
    assert gc.is_tracked(Invocation("key", here, nothing, cell, b"", b"", 1, b"", b"", 0, 1, 0, here))


def test_the_collector_is_told_of_each_reference_once() -> None:
    """Told twice, it would take what is in use for garbage. In the compiled form nothing else would show it."""
    here = footprint()
    cell = EntityCell(here, "key", Table({}, -1).reader(-1))
    nothing = entity.functions["nothing"]
    invocation = Invocation("key", here, nothing, cell, b"path", b"", 1, b"", b"", 0, 1, 0, here)
    assert [known is here.app for known in gc.get_referents(here)].count(True) == 1
    assert [known is here.limits for known in gc.get_referents(here)].count(True) == 1
    assert [known is here for known in gc.get_referents(invocation)].count(True) == 2, "environment and footprint"
    assert [known is cell for known in gc.get_referents(invocation)].count(True) == 1
    assert [known is nothing for known in gc.get_referents(invocation)].count(True) == 1
