"""The imports that a function makes when it runs, read from its bytecode."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from importlib.util import resolve_name
from types import CodeType
from typing import Any


def imported_names(code: CodeType, namespace: Mapping[str, Any]) -> list[str]:
    """Every module that `code`, or a function inside it, may import: with its parents, and `a.b` for `from a import b`.

    Some of them are no modules. Relative ones are resolved by the `__package__` of the function's globals.
    """
    names: dict[str, None] = {}
    package = namespace.get("__package__") or ""
    for name, level, members in _imports(code):
        try:
            absolute = resolve_name("." * level + name, package) if level else name
        except ImportError:
            continue  # it will fail when it runs, here as there
        parts = absolute.split(".")
        names.update(dict.fromkeys(".".join(parts[: i + 1]) for i in range(len(parts))))
        names.update(dict.fromkeys(f"{absolute}.{member}" for member in members if member != "*"))
    return list(names)


def _imports(code: CodeType) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """(name, level, members) of each import statement: the compiler puts level and members right before it."""
    before: list[Any] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            level, members = before[-2:]
            yield instruction.argval, level, members or ()
        if instruction.opname != "EXTENDED_ARG":
            before = [*before[-1:], instruction.argval]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant)
