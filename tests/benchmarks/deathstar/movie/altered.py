"""The app with something put in its functions' place for a while: what loses an effect, and what counts calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.deathstar.movie.app import app
from styx import Context

Function = Callable[..., Any]


@contextmanager
def _altered(change: Callable[[str, Function], Function]) -> Iterator[None]:
    """Has `change(NAME, function)` in each function's place; its name is `OPERATOR.FUNCTION`."""
    functions = [spec for operator in app.operators.values() for spec in operator.functions.values()]
    own = [spec.func for spec in functions]
    for spec in functions:
        spec.func = change(f"{spec.operator}.{spec.name}", spec.func)
    try:
        yield
    finally:
        for spec, function in zip(functions, own, strict=True):
            spec.func = function


@contextmanager
def losing(*effects: str) -> Iterator[None]:
    """Each of these functions does nothing when it is called first."""
    left = set(effects)

    def change(name: str, function: Function) -> Function:
        async def losing(ctx: Context, *arguments: Any) -> Any:
            if name in left:
                left.remove(name)
                return None
            return await function(ctx, *arguments)

        return losing

    with _altered(change):
        yield


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """How often each function is run."""
    calls: Counter[str] = Counter()

    def change(name: str, function: Function) -> Function:
        async def counted(ctx: Context, *arguments: Any) -> Any:
            calls[name] += 1
            return await function(ctx, *arguments)

        return counted

    with _altered(change):
        yield calls
