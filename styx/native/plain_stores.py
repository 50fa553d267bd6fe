"""Makes a `msgspec.Struct`'s attributes as cheap to set as those of any class with slots.

A Struct sets an attribute through a function of its own, which begins to track the object for the garbage collector
when it first gets something that the collector must know; the interpreter cannot take its short way past that. Only for
classes with `gc=False`, and those whose objects are tracked from their making, by what their first fields hold. Never
changes what an attribute may be.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def plain_stores(cls: type[S]) -> type[S]:
    """The same class. Subclasses need it again."""
    # After the class was made: what its body says is overridden by msgspec's metaclass.
    for name in ("__setattr__", "__delattr__"):
        setattr(cls, name, getattr(object, name))
    return cls
