"""Whether an app is the code that it was: a digest of its declarations, its modules' sources and its functions' values.

Declared state types count with their fields, wherever they come from: a type of an installed package may have changed
with the package.

Cheap, because every start of an engine makes one. Reads files of loaded modules; imports and runs nothing.
"""

from __future__ import annotations

import enum
import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, UNSET
from msgspec import inspect as msgspec_inspect

from styx.model.app import App
from styx.model.function_spec import FunctionSpec
from styx.model.ingest import Ingest
from styx.model.inlet import Inlet
from styx.schema.description import describe, routing_table
from styx.values.codec import is_scalar
from styx.values.custom_types import is_model, json_schema

_PLAIN: Final = (int, float, complex, str, bytes, bool, type(None))
_encode = msgspec.msgpack.Encoder().encode


def function_modules(app: App) -> set[str]:
    """The modules that define the app's functions, its partition keys, and the checks and views of its tables."""
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
        # A hint decides a transaction's place and outcome, and may be computed: no source shows it then.
        digest.update(_encode([(each, _told(operator.functions[each])) for each in sorted(operator.functions)]))
        if operator.ttl_us:  # an app without one keeps the digest that it has
            digest.update(_encode(operator.ttl_us))
        on_partitions = operator.partitions.functions
        if on_partitions:  # likewise
            digest.update(_encode([(each, _told(on_partitions[each])) for each in sorted(on_partitions)]))
        if operator.crons:  # likewise
            digest.update(_encode([operator.crons[place] for place in sorted(operator.crons, key=str)]))
    _add_declared(digest.update, app)
    sourceless = set()
    for name in sorted(modules):
        source = source_of(name)
        digest.update(_encode((name, source)))
        if source is None:
            sourceless.add(name)
    seen: set[int] = set()
    for function in [*_functions(app), *_migrations(app)]:
        _add(digest.update, function, sourceless, seen)
    return digest.hexdigest()


def _told(function: FunctionSpec) -> Sequence[bool]:
    """The hints of a function. Without `contended` where it is not given: such an app keeps the digest that it has."""
    hints = function.hints
    return hints if hints.contended else hints[:2]


def _add_declared(update: Callable[[bytes], object], app: App) -> None:
    """Adds tables, events, ingests, subscriptions and graphs; an app without one keeps the digest that it has."""
    if app.tables or app.drops:
        described = describe(app)
        update(_encode([[one.tables for one in described.operators.values()], described.drops]))
        for table in app.tables.values():
            update(_encode((table.full_name, type_shape(table.row_type.declared))))
    if app.events:
        for event in app.events.values():
            rows = (str(event.rows),) if event.rows else ()
            update(_encode((event.name, event.version, type_shape(event.type), str(event.keep), *rows)))
    _add_ingests(update, app)
    if app.graphs or any(operator.subscriptions for operator in app.operators.values()):
        described = describe(app)
        update(_encode([described.graphs, [one.subscriptions for one in described.operators.values()]]))


def _add_ingests(update: Callable[[bytes], object], app: App) -> None:
    """Adds what ingests declare beside their functions: no source shows it if it is computed."""
    for ingest in app.operators.values():
        if isinstance(ingest, Ingest):
            to = "" if ingest.to is None else ingest.to.name, ingest.to_function, [each.name for each in ingest.emits]
            update(_encode((ingest.name, ingest.topic, ingest.start, *to, type_shape(ingest.value))))


def _functions(app: App) -> Iterator[types.FunctionType]:
    for _, operator in sorted(app.operators.items()):
        if isinstance(operator, Ingest | Inlet):  # whose own functions are the engine's
            yield from (each for each in operator.deciding if isinstance(each, types.FunctionType))
            continue
        for functions in (operator.functions, operator.partitions.functions):
            for name in sorted(functions):
                function = inspect.unwrap(functions[name].func)
                if isinstance(function, types.FunctionType):
                    yield function
        of_events = [each for one in operator.subscriptions for each in (one.key, one.ordered_by)]
        for decides in (operator.key_space.partition_key, *of_events):
            if isinstance(decides, types.FunctionType):
                yield decides
        for table in operator.tables.values():
            for decides in (*(check.function for check in table.checks), *(view.where for view in table.views)):
                if isinstance(decides, types.FunctionType):
                    yield decides


def _migrations(app: App) -> Iterator[types.FunctionType]:
    for _, operator in sorted(app.operators.items()):
        for migration in (operator.migration, *(table.migration for table in operator.tables.values())):
            function = None if migration is None else migration.function
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


def source_of(name: str) -> bytes | None:
    """The source of a loaded module; None if it has no file that can be read."""
    file = getattr(sys.modules.get(name), "__file__", None)
    try:
        return Path(file).read_bytes() if file is not None else None
    except OSError:
        return None


# Types ---------------------------------------------------------------------------------------------------------------


def type_shape(declared: Any) -> str:
    """The shape of a type as text: which stored values the type reads, and as what; empty for None.

    The text is the same in every process. Two declarations with the same text read the same values alike, as far as
    their fields say. Their own code (validators, `__post_init__`) and their names do not count.
    """
    return "" if declared is None else _Shape().of(msgspec_inspect.type_info(declared))


class _Shape:
    """The shape of one type; where the type contains itself, the text has its number."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def of(self, value: Any) -> str:
        if isinstance(value, msgspec_inspect.Metadata):
            return self.of(value.type)
        if isinstance(value, msgspec_inspect.Type | msgspec_inspect.Field):
            number = self._seen.get(id(value))
            if number is not None:
                return f"#{number}"
            self._seen[id(value)] = len(self._seen)
            parts = (f"{name}={self.of(getattr(value, name))}" for name in value.__struct_fields__)
            return f"{type(value).__name__}({', '.join(parts)})"
        if isinstance(value, tuple):
            return f"[{', '.join(map(self.of, value))}]"
        if isinstance(value, type):
            return _of_class(value)
        if value is NODEFAULT or value is UNSET:
            return "-"
        return repr(value) if is_scalar(value) else type(value).__name__


def _of_class(cls: type) -> str:
    if issubclass(cls, enum.Enum):
        return repr(sorted(repr(member.value) for member in cls))
    return _sorted(json_schema(cls)) if is_model(cls) else ""


def _sorted(schema: Any) -> str:
    """Without any order: a default that is a set has another one in every process."""
    if isinstance(schema, dict):
        return f"{{{', '.join(f'{key!r}: {_sorted(value)}' for key, value in sorted(schema.items()))}}}"
    return f"[{', '.join(sorted(map(_sorted, schema)))}]" if isinstance(schema, list) else repr(schema)
