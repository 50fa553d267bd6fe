"""Makes a `msgspec.Struct`'s attributes as cheap to set as those of any class with slots.

A Struct sets an attribute through a function of its own. That function makes the garbage collector track the object as
soon as the object holds a value that the collector must know, and it keeps the interpreter from its fast path. This
module is only for classes with `gc=False`, and for classes whose objects are tracked from the start because of their
first fields.
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
