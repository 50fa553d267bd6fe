"""Builds an app from the bytes of `styx.deployment.pickler`, in separate modules that no other code can import.

Two apps, or two versions of one app, share only installed distributions. The caller must have verified the bytes: they
are code, and unpickling runs them.
"""

from __future__ import annotations

import builtins
import pickle
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.util import resolve_name
from io import BytesIO
from typing import Any

import cloudpickle

from styx.deployment.classes import set_attributes
from styx.deployment.moved_names import present_name, present_place, with_moved
from styx.deployment.package_format import PackageRefused
from styx.deployment.rebuilding import Declaration, LateDecoder, declare, declared_graph
from styx.deployment.user_code import is_user_code
from styx.model.app import App
from styx.model.event import Event
from styx.model.ingest import Ingest
from styx.model.inlet import Inlet
from styx.model.kept_event import adopt
from styx.model.operator import Operator
from styx.relational.table import Table


class AppUnpickler(pickle.Unpickler):
    """Unpickles one app. Afterwards `named_modules` has the modules that objects of it were found in by their names."""

    def __init__(self, payload: bytes) -> None:
        super().__init__(BytesIO(payload))
        self.named_modules: set[str] = set()
        self._app: App = App.__new__(App)
        self._operators: dict[int, Operator] = {}
        self._made: dict[int, Ingest | Inlet] = {}
        self._tables: dict[int, Table] = {}
        self._events: dict[int, Event[Any]] = {}
        self._kept: dict[tuple[str, str], Table] = {}
        self._modules: dict[int, types.ModuleType] = {}
        self._builtins: dict[str, Any] = {**vars(builtins)}

    def unpickled(self) -> App:
        """The app; raises `PackageRefused` if something of it cannot be built here."""
        try:
            return self._load_all()
        except Exception as error:  # the app's own code runs here: it can raise anything
            raise PackageRefused(f"the package cannot be unpacked: {type(error).__name__}: {error}") from error

    def _load_all(self) -> App:
        declared: dict[int, Declaration] = {}
        tables: dict[int, dict[str, Any]] = {}
        emitted: list[tuple[Event[Any], dict[str, Any]]] = []
        made: list[tuple[Ingest | Inlet, dict[str, Any]]] = []
        name = ""
        operators: list[Operator] = []
        drops: tuple[str, ...] = ()
        events: Sequence[Event[Any]] = ()
        graphs: Sequence[tuple[Any, ...]] = ()
        while (item := self.load()) is not None:
            match item:
                case ("app", name, operators, *rest):  # packages of earlier releases have less
                    drops, events, graphs = (*rest, (), (), ())[:3]
                case ("operator", index, declaration):
                    declared[index] = Declaration(*declaration)
                case ("made", index, arguments):
                    made.append((self._made[index], arguments))
                case ("table", index, arguments):
                    tables[id(self._tables[index])] = arguments
                case ("event", index, arguments):
                    emitted.append((self._events[index], arguments))
                case ("attributes", cls, attributes):
                    set_attributes(cls, attributes)
                case ("name", module, attribute, value):
                    vars(module)[attribute] = value
                case ("imports", modules):
                    self._make_importable(modules)
        self._make_decoders()
        for event, arguments in emitted:
            event.__init__(**arguments)  # type: ignore[misc]  # the shell that functions already refer to
        declare([(self._operators[index], declaration) for index, declaration in declared.items()], tables)
        for one, arguments in made:
            one.__init__(**arguments)  # type: ignore[misc]  # likewise
        drawn = [declared_graph(graph) for graph in graphs]
        self._app.__init__(name, operators, drops=drops, events=events, graphs=drawn)  # type: ignore[misc]  # likewise
        adopt(self._app, self._kept)
        return self._app

    def persistent_load(self, pid: Any) -> Any:
        """The object that a reference stands for; its contents come later."""
        match pid:
            case ("module", index, name, package):
                if index not in self._modules:
                    self._modules[index] = self._new_module(name, package)
                return self._modules[index]
            case ("operator", index):
                return self._operators.setdefault(index, Operator.__new__(Operator))
            case ("made", index, kind):
                empty: Ingest | Inlet = Ingest.__new__(Ingest) if kind == "Ingest" else Inlet.__new__(Inlet)
                return self._made.setdefault(index, empty)
            case ("table", index):
                return self._tables.setdefault(index, Table())
            case ("kept", event, operator):
                return self._kept.setdefault((event, operator), Table())
            case ("event", index):
                return self._events.setdefault(index, Event.__new__(Event))
            case ("app",):
                return self._app
        raise pickle.UnpicklingError(f"unknown reference {pid!r}")

    def find_class(self, module: str, name: str, /) -> Any:
        """The installed object of a name; raises `UnpicklingError` for the app's own, which only this process has."""
        module, name = present_place(module, name)
        self.named_modules.add(module)
        loaded = sys.modules.get(module)
        if loaded is not None and is_user_code(loaded):
            raise pickle.UnpicklingError(
                f"{module}.{name} has been pickled by its name, and only this process could find it"
            )
        found = super().find_class(module, name)
        return _import_module if found is cloudpickle.subimport else found

    def _new_module(self, name: str, package: str | None) -> types.ModuleType:
        module = types.ModuleType(name)
        module.__package__ = package
        vars(module)["__builtins__"] = self._builtins
        return module

    def _make_importable(self, shipped: dict[str, types.ModuleType]) -> None:
        """Lets the app's functions import its modules when they run; no other code finds them."""
        for name, module in shipped.items():
            parent, _, child = name.rpartition(".")
            if parent in shipped:
                setattr(shipped[parent], child, module)
        self._builtins["__import__"] = _Importer(shipped)

    def _make_decoders(self) -> None:
        """Puts decoders where a module's global stands for one; elsewhere, what stands for it does its work."""
        for module in self._modules.values():
            for name, value in vars(module).items():
                if type(value) is LateDecoder:
                    vars(module)[name] = value.decoder()


def _import_module(name: str) -> types.ModuleType:
    """The installed module that an object refers to: cloudpickle's `subimport`, for names of earlier releases too."""
    return with_moved(name, cloudpickle.subimport(present_name(name)))


class _Importer:
    """`__import__` of one package's functions: its own modules first, then the installed ones."""

    def __init__(self, shipped: Mapping[str, types.ModuleType]) -> None:
        self._shipped = shipped

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> types.ModuleType:
        package = str((globals or {}).get("__package__") or "")
        absolute = resolve_name("." * level + name, package) if level else name
        module = self._shipped.get(absolute)
        if module is not None:
            return module if fromlist else self._shipped[absolute.partition(".")[0]]
        imported = builtins.__import__(present_name(name), globals, locals, fromlist or (), level)
        return with_moved(absolute if fromlist else absolute.partition(".")[0], imported)
