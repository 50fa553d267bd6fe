"""Code for compiled modules that must stay interpreted: the marks `native` and `USUAL`, which only the compiler reads;
`plain_stores`, which makes the attributes of a Struct cheap to set; and `steps`, a generator that awaits coroutines
(paper section 5.2).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, TypeVar, overload

import msgspec

C = TypeVar("C", bound=type)
S = TypeVar("S", bound=msgspec.Struct)

USUAL: Final = "usual"
"""Marks a function's variable that holds a class, nearly always X: `kind: Annotated[type[X], USUAL] = …`. The compiled
form calls X by its name if the variable holds X, because arguments travel slowly through a variable.
"""


@overload
def native(cls: C, /) -> C: ...


@overload
def native(*, subclassed: bool = ..., short_lived: bool = ..., unchecked: bool = ...) -> Callable[[C], C]: ...


def native(cls: Any = None, /, *, subclassed: bool = False, short_lived: bool = False, unchecked: bool = False) -> Any:
    """Marks a class for the compiled form, and does nothing in the plain form.

    A `msgspec.Struct` of a compiled module needs the mark: the compiled form writes it anew, as a native class. Other
    classes there are native by themselves and need it for its keywords. `subclassed`: interpreted code derives from
    the class. `short_lived`: one object after the other is made and freed, and the memory of the last one is kept for
    the next; such objects hold nothing when they are freed, so that the collector need not know them. `unchecked`:
    users call the methods, which take whatever is passed. `scripts/compile` refuses a mark that is missing, or does
    nothing.
    """
    return cls if cls is not None else lambda marked: marked


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

    Takes a coroutine with each `send`. Puts the coroutine's return value into `result[0]`, and yields its yields.
    """
    coroutine = yield
    while True:
        result[0] = yield from coroutine
        coroutine = yield RETURNED
