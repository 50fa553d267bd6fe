"""Pickles an app with the code it is made of: functions and classes of the app's own modules by value.

It extends cloudpickle's pickler. Operators, the app and the app's modules are written as references and their contents
afterwards, so that they may refer to each other in any way. After unpickling, all functions of a module share its
globals again. Modules that a function imports when it runs are found, too. Nothing of the app is imported or called.
"""

from __future__ import annotations

import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from io import BytesIO
from typing import Any, Final

import cloudpickle
import msgspec

from styx.deployment import classes, rebuilding
from styx.deployment.rebuilding import declaration, graph_declaration, table_declaration
from styx.deployment.user_code import finds_user_code, imported_names, is_user_code
from styx.errors import ConfigurationError
from styx.model.app import App
from styx.model.event import Event
from styx.model.ingest import Ingest
from styx.model.inlet import Inlet
from styx.model.operator import Operator
from styx.model.partition_function import declared_function
from styx.relational.table import Table

_NOT_PACKED: Final = frozenset({"__builtins__", "__cached__", "__loader__", "__path__", "__spec__", "__name__"})
_INSTANCES: Final[Sequence[tuple[Any, Callable[[Any], Any]]]] = (
    (tuple(classes.SENTINELS), classes.reduce_sentinel),
    (typing.TypeVar, classes.reduce_type_variable),
    (msgspec.Struct, classes.reduce_struct_instance),
    ((msgspec.msgpack.Decoder, msgspec.json.Decoder), rebuilding.reduce_decoder),
    ((msgspec.msgpack.Encoder, msgspec.json.Encoder), rebuilding.reduce_encoder),
    (msgspec.Meta, rebuilding.reduce_meta),
)
"""How instances are taken apart for which there is no way that fits."""


class _Globals:
    """Stands for the globals of functions while they are reduced."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names


class AppPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Pickles one app. Afterwards `own_modules` and `foreign_modules` have the names of what was found
    to be packed and to be imported; what objects are made of comes on top of the latter when it is unpickled.
    """

    def __init__(self, app: App) -> None:
        self._buffer = BytesIO()
        super().__init__(self._buffer, protocol=5)
        self.own_modules: set[str] = set()
        self.foreign_modules: set[str] = set()
        self._app = app
        self._operators: dict[int, tuple[int, Operator]] = {}
        self._made: dict[int, tuple[int, Ingest | Inlet]] = {}
        self._tables: dict[int, tuple[int, Table]] = {}
        self._events: dict[int, tuple[int, Event[Any]]] = {}
        self._kept = {id(table): (event, on) for event, of in app.kept.items() for on, table in of.items()}
        self._namespaces: dict[int, tuple[int, dict[str, Any]]] = {}
        self._whole: dict[int, types.ModuleType] = {}
        self._imports: dict[str, types.ModuleType] = {}
        self._attributes: dict[type, dict[str, Any]] = {}
        self._annotations: dict[int, dict[str, Any]] = {}
        self._strict = True
        self._at = f"app {app.name!r}"

    def pickled(self) -> bytes:
        """The payload for `styx.deployment.unpickler`; raises `ConfigurationError` for what cannot be pickled."""
        try:
            self._dump_all()
        except ConfigurationError:
            raise
        except Exception as error:  # an object's own __reduce__ can raise anything
            raise ConfigurationError(
                f"app {self._app.name!r} cannot be packed: {error} (in {self._at}): "
                "what functions refer to must be plain values; make or open anything else where it is used"
            ) from error
        return self._buffer.getvalue()

    def _dump_all(self) -> None:
        operators = list(self._app.operators.values())
        for operator in operators:
            if type(operator) is Operator:
                self._resolve_annotations(operator)
        events = [*self._app.events.values()]
        graphs = [graph_declaration(graph) for graph in self._app.graphs.values()]
        self.dump(("app", self._app.name, operators, self._app.drops, events, graphs))
        done = tables_done = events_done = made_done = 0
        whole: set[int] = set()
        while True:
            # In this order: a class is complete before anybody who is not part of it may need that.
            if self._attributes:
                cls, attributes = self._attributes.popitem()
                self.dump(("attributes", cls, attributes))
            elif done < len(self._operators):
                _, operator = list(self._operators.values())[done]
                self.dump(("operator", done, tuple(declaration(operator))))
                done += 1
            elif made_done < len(self._made):
                _, made = list(self._made.values())[made_done]
                self.dump(("made", made_done, made.given))
                made_done += 1
            elif tables_done < len(self._tables):
                _, table = list(self._tables.values())[tables_done]
                self.dump(("table", tables_done, table_declaration(table)))
                tables_done += 1
            elif events_done < len(self._events):
                _, event = list(self._events.values())[events_done]
                self.dump(("event", events_done, event.given))
                events_done += 1
            elif len(whole) < len(self._whole):
                index = next(index for index in self._whole if index not in whole)
                whole.add(index)
                self._strict = False
                self._dump_module(self._whole[index])
            else:
                break
        self.dump(("imports", self._imports))
        self.dump(None)

    def _dump_module(self, module: types.ModuleType) -> None:
        for name, value in vars(module).copy().items():
            if name not in _NOT_PACKED:
                self._at = f"{module.__name__}.{name}"
                self.dump(("name", module, name, value))

    def _resolve_annotations(self, operator: Operator) -> None:
        """Annotations of registered functions as types: elsewhere their text could not be resolved."""
        for migration in (operator.migration, *(table.migration for table in operator.tables.values())):
            if migration is not None:
                self._annotations[id(migration.function)] = migration.annotations
        functions = [(each, each.func) for each in operator.functions.values()]
        functions += [(each, declared_function(each)) for each in operator.partitions.functions.values()]
        for function, func in functions:
            signature = function.signature
            resolved = {parameter.name: parameter.annotation for parameter in signature.parameters}
            resolved["return"] = signature.result_type
            for one in (func, inspect.unwrap(func)):
                self._annotations[id(one)] = resolved

    # Called by the pickler ---------------------------------------------------------------------------------

    def persistent_id(self, obj: Any) -> Any:
        """The reference that is written in place of `obj`; None: it is written itself."""
        kind = type(obj)
        if kind is _Globals:
            return ("module", *self._namespace(obj.names))
        if isinstance(obj, types.ModuleType):
            return self._module(obj)
        if kind is Ingest or kind is Inlet:
            index, _ = self._made.setdefault(id(obj), (len(self._made), obj))
            return ("made", index, kind.__name__)
        if isinstance(obj, Operator):
            if kind is not Operator:
                raise ConfigurationError(f"{obj} is of type {kind.__name__}: only an Operator itself can be packed")
            index, _ = self._operators.setdefault(id(obj), (len(self._operators), obj))
            return ("operator", index)
        if kind is Table:
            if id(obj) in self._kept:  # the app makes it of the event
                return ("kept", *self._kept[id(obj)])
            index, _ = self._tables.setdefault(id(obj), (len(self._tables), obj))
            return ("table", index)
        if kind is Event:
            index, _ = self._events.setdefault(id(obj), (len(self._events), obj))
            return ("event", index)
        if kind is App and obj is self._app:
            return ("app",)
        return None

    def reducer_override(self, obj: Any) -> Any:
        """How `obj` is taken apart; NotImplemented: as pickle does."""
        if isinstance(obj, type):
            return self._reduce_class(obj)
        if isinstance(obj, types.FunctionType):
            return self._reduce_function(obj)
        if isinstance(obj, functools._lru_cache_wrapper):
            return classes.reduce_cached(obj) if self._is_own(obj.__module__) else NotImplemented
        if isinstance(obj, typing.NewType):
            return classes.reduce_new_type(obj) if self._is_own(obj.__module__) else NotImplemented
        for kinds, reduce in _INSTANCES:
            if isinstance(obj, kinds):
                return reduce(obj)
        return NotImplemented

    # Functions and classes ---------------------------------------------------------------------------------

    def _reduce_function(self, function: types.FunctionType) -> Any:
        reduced = super().reducer_override(function)
        if reduced is NotImplemented:
            return reduced
        if "__spec__" in function.__globals__:  # else they are no module's: a named tuple's methods, for example
            self.own_modules.add(function.__module__)
        self._at = f"{function.__module__}.{function.__qualname__}"
        _, (code, _, _, _, closure), (attributes, details), *_ = reduced
        resolved = self._annotations.get(id(function))
        if resolved is not None:
            annotations = details["__annotations__"]
            details["__annotations__"] = {name: resolved.get(name, value) for name, value in annotations.items()}
        self._find_imports(function)
        arguments = (code, _Globals(function.__globals__), closure)
        return (rebuilding.make_function, arguments, (attributes, details), None, None, rebuilding.set_function)

    def _reduce_class(self, cls: type) -> Any:
        reduced = super().reducer_override(cls)
        if reduced is NotImplemented or len(reduced) < 3:
            return reduced
        self.own_modules.add(cls.__module__)
        self._at = f"{cls.__module__}.{cls.__qualname__}"
        if issubclass(cls, msgspec.Struct):
            reduced, self._attributes[cls] = classes.reduce_struct(cls)
            return reduced
        if typing.is_typeddict(cls):
            return classes.reduce_typed_dict(cls)
        build, arguments, (attributes, details), first, second, setter = reduced
        # Without cloudpickle's id of the class, by which two packages in one process would share it.
        arguments = (*arguments[:-2], None, arguments[-1])
        attributes = {name: value for name, value in attributes.items() if not classes.is_cache(name)}
        if issubclass(cls, enum.Enum):
            return classes.complete_enum(cls, (build, arguments, (attributes, details)))
        metaclass, name, bases, given, *rest = arguments
        arguments = (metaclass, name, bases, {**given, **classes.identity(cls)}, *rest)
        if "__annotations__" in attributes:
            attributes = {**attributes, "__annotations__": classes.annotations_of(cls)}
        return (build, arguments, (attributes, details), first, second, setter)

    # Modules -----------------------------------------------------------------------------------------------

    def _is_own(self, name: str) -> bool:
        module = sys.modules.get(name)
        return module is None or is_user_code(module)

    def _namespace(self, names: dict[str, Any]) -> tuple[int, str, str | None]:
        """Index, name and package of a module's globals."""
        # The globals are kept with their index, so that no others come to have the same id.
        index, _ = self._namespaces.setdefault(id(names), (len(self._namespaces), names))
        return index, names.get("__name__", "?"), names.get("__package__")

    def _module(self, module: types.ModuleType) -> Any:
        if not is_user_code(module):
            self.foreign_modules.add(module.__name__)
            return None
        self.own_modules.add(module.__name__)
        index, name, package = self._namespace(vars(module))
        self._whole[index] = module
        return ("module", index, name, package)

    def _find_imports(self, function: types.FunctionType) -> None:
        for name in imported_names(function.__code__, function.__globals__):
            module = sys.modules.get(name)
            if module is not None and is_user_code(module):
                self._module(module)
                self._imports[name] = module
            elif module is not None:
                self.foreign_modules.add(name)
            elif finds_user_code(name):
                if self._strict:
                    raise ConfigurationError(
                        f"{self._at} imports {name} when it runs, and nothing has imported it yet, so it cannot be "
                        f"packed: import {name} at the top of {function.__module__} as well"
                    )
            elif "." not in name and PathFinder.find_spec(name) is not None:
                self.foreign_modules.add(name)  # one that cannot be found here may be meant to fail
