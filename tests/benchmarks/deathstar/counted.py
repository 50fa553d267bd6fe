"""How often each function of an app is run, while nothing else about it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from styx import App, Context
from styx.model.function_spec import FunctionSpec


@contextmanager
def counting(app: App) -> Iterator[Counter[str]]:
    """Counts under `OPERATOR.FUNCTION`, until the block ends."""
    calls: Counter[str] = Counter()
    functions = [spec for operator in app.operators.values() for spec in operator.functions.values()]
    originals = [spec.func for spec in functions]
    for spec in functions:
        spec.func = _counted(spec, calls)
    try:
        yield calls
    finally:
        for spec, original in zip(functions, originals, strict=True):
            spec.func = original


def _counted(spec: FunctionSpec, calls: Counter[str]) -> Any:
    original = spec.func

    async def counted(ctx: Context, *arguments: Any) -> Any:
        calls[f"{spec.operator}.{spec.name}"] += 1
        return await original(ctx, *arguments)

    return counted
