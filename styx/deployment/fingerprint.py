"""Whether an app is the code that it was: a digest of its declarations, its modules' sources and its functions' values.

Declared state types count with their fields, wherever they come from: a type of an installed package may have changed
with the package.

Cheap, because every start of an engine makes one. Reads files of loaded modules; imports and runs nothing.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from styx.model.app import App
from styx.schema.description import describe, routing_table
from styx.schema.type_shape import type_shape

_PLAIN: Final = (int, float, complex, str, bytes, bool, type(None))
_encode = msgspec.msgpack.Encoder().encode


def function_modules(app: App) -> set[str]:
    """The modules that define the app's functions, and its partition keys."""
    return {str(function.__module__) for function in _functions(app)}


def fingerprint(app: App, modules: Iterable[str]) -> str:
    """SHA-256 of what the app declares, of the sources of `modules`, and of what its functions find in them: numbers,
    texts and tuples of them that are global, or bound in a closure. Other values, and what is installed, do not count,
    but for the state types.

    The same in every process for the same code. A function of a module without a source counts as compiled.
    """
    digest = hashlib.sha256(routing_table(describe(app)).encode())
    for name, operator in sorted(app.operators.items()):
        digest.update(_encode((name, type_shape(operator.state_type), operator.migration is not None)))
    sourceless = set()
    for name in sorted(modules):
        source = _source(name)
        digest.update(_encode((name, source)))
        if source is None:
            sourceless.add(name)
    seen: set[int] = set()
    for function in [*_functions(app), *_migrations(app)]:
        _add(digest.update, function, sourceless, seen)
    return digest.hexdigest()


def _functions(app: App) -> Iterator[types.FunctionType]:
    for _, operator in sorted(app.operators.items()):
        for name in sorted(operator.functions):
            function = inspect.unwrap(operator.functions[name].func)
            if isinstance(function, types.FunctionType):
                yield function
        part_of = operator.key_space.partition_key
        if isinstance(part_of, types.FunctionType):
            yield part_of


def _migrations(app: App) -> Iterator[types.FunctionType]:
    for _, operator in sorted(app.operators.items()):
        function = None if operator.migration is None else operator.migration.function
        if isinstance(function, types.FunctionType):
            yield function


def _add(update: Callable[[bytes], object], function: types.FunctionType, sourceless: set[str], seen: set[int]) -> None:
    """Adds a function, and those that it uses of modules that have no source, and the values that all of them find."""
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        update(f"{one.__module__}.{one.__qualname__}".encode())
        codes = list(_nested(one.__code__))
        if one.__module__ in sourceless:
            for code in codes:
                constants = [repr(each) for each in code.co_consts if _is_plain(each)]
                update(_encode((code.co_code, code.co_names, constants)))
        for name, value in _found(one, codes):
            if _is_plain(value):
                update(_encode((name, repr(value))))
            elif isinstance(value, types.FunctionType) and value.__module__ == one.__module__:
                waiting.append(value)


def _found(function: types.FunctionType, codes: list[types.CodeType]) -> Iterator[tuple[str, Any]]:
    names = sorted({name for code in codes for name in code.co_names})
    yield from ((name, function.__globals__[name]) for name in names if name in function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # nothing was bound yet
            continue


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _is_plain(value: object) -> bool:
    return type(value) in _PLAIN or (type(value) is tuple and all(map(_is_plain, value)))


def _source(name: str) -> bytes | None:
    file = getattr(sys.modules.get(name), "__file__", None)
    try:
        return Path(file).read_bytes() if file is not None else None
    except OSError:
        return None
