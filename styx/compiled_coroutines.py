"""What the coroutines of compiled methods are called: what plain ones are, because users read it where they forget an
`await`, and replies quote it. Never changes what they do.
"""

from __future__ import annotations

from typing import Any


def name_coroutines(cls: Any, parameters: dict[str, int]) -> None:
    """Names the type that each method's coroutines have of their own; `parameters` are those it must get, by method."""
    one = cls.__new__(cls)
    for method, count in parameters.items():
        _name(type(getattr(one, method)(*[None] * count)), f"{cls.__name__}.{method}")


def _name(kind: Any, function: str) -> None:
    def represent(self: object) -> str:
        return f"<coroutine object {function} at {id(self):#x}>"

    kind.__name__ = kind.__qualname__ = "coroutine"
    kind.__module__ = "builtins"
    kind.__repr__ = represent
