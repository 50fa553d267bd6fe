"""A command line that calls one of an app's functions, with values for its parameters, for the user to run as it is."""

from __future__ import annotations

import inspect
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from styx.model.app import App
from styx.model.function_spec import FunctionSpec

URL_DEFAULT: Final = "http://127.0.0.1:8080"
DEPTH_MAX: Final = 8
_VALUES: Final[dict[type, Any]] = {
    msgspec.inspect.IntType: 100,
    msgspec.inspect.FloatType: 1.5,
    msgspec.inspect.BoolType: True,
    msgspec.inspect.DecimalType: "10.50",
    msgspec.inspect.DateTimeType: "2025-01-31T12:00:00Z",
    msgspec.inspect.DateType: "2025-01-31",
    msgspec.inspect.TimeType: "12:00:00",
    msgspec.inspect.TimeDeltaType: "PT1H",
    msgspec.inspect.UUIDType: "9d2c7b3e-0f3c-4b7e-8a55-3d6f0a1c2b4d",
    msgspec.inspect.NoneType: None,
    msgspec.inspect.BytesType: "AA==",
}
_EMPTY_LISTS: Final = (
    msgspec.inspect.ListType,
    msgspec.inspect.SetType,
    msgspec.inspect.FrozenSetType,
    msgspec.inspect.VarTupleType,
)
_WITH_FIELDS: Final = (msgspec.inspect.StructType, msgspec.inspect.DataclassType, msgspec.inspect.TypedDictType)


def example(app: App, url: str, *, guarded: bool = False) -> str:
    """A command that calls a function of the app at `url`: the first function for whose parameters values are found.
    Empty if there is none. `guarded`: the gateway asks for an API key, for which the command has a placeholder.
    """
    for operator in app.operators.values():
        for spec in operator.functions.values():
            words = _words(spec, operator.key_type)
            if words is not None:
                at = [] if url == URL_DEFAULT else ["--url", url]
                key = ["STYX_API_KEY=KEY"] if guarded else []
                return " ".join([*key, command(), "call", *map(shlex.quote, [*words, *at])])
    return ""


def command(directory: Path | None = None) -> str:
    """The words that start this program in the user's shell: in the present directory, or in `directory`."""
    started = Path(sys.argv[0])
    if started.name != "styx":
        return f"{shlex.quote(sys.executable)} -m styx"
    found = shutil.which("styx")
    if found is not None and os.path.realpath(found) == os.path.realpath(started):
        return "styx"
    if not started.absolute().is_relative_to(Path.cwd()):
        return shlex.quote(str(started))
    at = Path.cwd() / (directory or "")
    return shlex.quote(os.path.relpath(started, at) if at.is_relative_to(Path.cwd()) else str(started.absolute()))


def _words(spec: FunctionSpec, key_type: Any) -> list[str] | None:
    parameters = spec.signature.parameters
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in variadic]
    if any(p.kind is p.KEYWORD_ONLY for p in needed):
        return None  # arguments of a command line are positional
    try:
        values = [_value(p.name, msgspec.inspect.type_info(p.annotation), 0) for p in needed]
        spec.signature.decode(msgspec.msgpack.encode(values))
    except Exception:  # noqa: BLE001 - a type with rules of its own: another function has to do
        return None
    return [spec.operator, _key(key_type), spec.name, *map(_word, values)]


def _key(key_type: Any) -> str:
    parts = {str: "alice", int: "1"}
    if key_type.scalar in parts:
        return parts[key_type.scalar]
    return msgspec.json.encode([1 if part is int else "a" for part in key_type.parts]).decode()


def _word(value: Any) -> str:
    """As `styx.cli.call` reads it."""
    if isinstance(value, str):
        try:
            msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return msgspec.json.encode(value).decode()


def _value(name: str, kind: Any, depth: int) -> Any:
    """A value that msgspec takes for the type; raises `LookupError` if there is no simple one."""
    if depth > DEPTH_MAX:
        raise LookupError(name)
    at = type(kind)
    if at in _VALUES:
        return _VALUES[at]
    if at in (msgspec.inspect.StrType, msgspec.inspect.AnyType):
        return name
    if at in _EMPTY_LISTS:
        return []
    if at is msgspec.inspect.TupleType:
        return [_value(name, item, depth + 1) for item in kind.item_types]
    if at is msgspec.inspect.DictType:
        return {}
    if at is msgspec.inspect.LiteralType:
        return kind.values[0]
    if at is msgspec.inspect.EnumType:
        return next(iter(kind.cls)).value
    if at is msgspec.inspect.UnionType:
        return _value(name, kind.types[0], depth + 1)
    if at is msgspec.inspect.Metadata:
        return _value(name, kind.type, depth + 1)
    if at in _WITH_FIELDS and not getattr(kind, "array_like", False):
        fields = {f.encode_name: _value(f.name, f.type, depth + 1) for f in kind.fields if f.required}
        tag = {kind.tag_field: kind.tag} if getattr(kind, "tag_field", None) else {}
        return {**tag, **fields}
    raise LookupError(name)
