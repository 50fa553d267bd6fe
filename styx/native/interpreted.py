"""What compiled code needs and cannot have compiled: cheap stores of attributes, and a generator that awaits.

Paper section 5.2.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, Final, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def plain_stores(cls: type[S]) -> type[S]:
    """Makes a Struct's attributes as cheap to set as those of any class with slots; returns the same class.

    A Struct sets an attribute through a function of its own. That function makes the garbage collector track the object
    as soon as the object holds a value that the collector must know, and it keeps the interpreter from its fast path.
    So this is only for classes with `gc=False`, and for classes whose objects are tracked from the start because of
    their first fields. Subclasses need it again.
    """
    # After the class was made: msgspec's metaclass overrides what a class's body says.
    for name in ("__setattr__", "__delattr__"):
        setattr(cls, name, getattr(object, name))
    return cls


RETURNED: Final = object()
"""What `steps` yields for a coroutine that has ended."""

Steps = Generator[Any, Coroutine[Any, Any, Any], None]


@types.coroutine
def steps(result: list[Any]) -> Steps:
    """Awaits one coroutine after the other, for `styx.native.compiled.FirstSteps`: compiled code cannot do so.

    Takes a coroutine with each `send`; puts what it returns into `result[0]`, and yields what it yields.
    """
    coroutine = yield
    while True:
        result[0] = yield from coroutine
        coroutine = yield RETURNED
