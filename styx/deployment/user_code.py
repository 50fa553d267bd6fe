"""Which modules are the app's own code, which installed distribution any other one belongs to, and which modules a
function imports when it runs.

The app's own code is all code outside of the standard library, of styx and of installed distributions. A working tree
that is installed as editable counts as own code, too. Files and metadata decide; nothing is imported.
"""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from types import CodeType, ModuleType
from typing import Any, Final

from styx.deployment.package_format import Dependency

_INSTALLED: Final = ("site-packages", "dist-packages")
_STANDARD_LIBRARY: Final = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
)
_OWN: Final = frozenset({"styx", "cloudpickle"})
"""Modules that every process that unpacks has: packages are made of both, and the header names their versions."""


def user_modules() -> dict[str, ModuleType]:
    """The loaded modules that are the app's own code, by name."""
    return {
        name: module
        for name, module in sys.modules.copy().items()
        if isinstance(module, ModuleType) and getattr(module, "__name__", None) == name and is_user_code(module)
    }


def is_user_code(module: ModuleType) -> bool:
    """Whether a package must contain `module`, because no other process has it."""
    name = module.__name__
    if name == "__main__":
        return True
    file = getattr(module, "__file__", None)
    places = [file] if file is not None else list(getattr(module, "__path__", ()))
    return _is_user_code(name, tuple(places))


def finds_user_code(name: str) -> bool:
    """Whether an import of `name`, which is not loaded yet, would find the app's own code; nothing is executed."""
    path: Iterable[str] | None = None
    spec: ModuleSpec | None = None
    prefix = ""
    for part in name.split("."):
        prefix = f"{prefix}.{part}" if prefix else part
        spec = PathFinder.find_spec(prefix, None if path is None else list(path))
        if spec is None:
            return False
        path = spec.submodule_search_locations or ()
    if spec is None:
        return False
    places = [spec.origin] if spec.origin is not None else list(spec.submodule_search_locations or ())
    return _is_user_code(name, tuple(places))


def dependencies(modules: Iterable[str]) -> list[Dependency]:
    """The distributions that installed modules belong to, with their versions, sorted by name.

    Without the standard library, and without what every process has that unpacks a package.
    """
    owners = metadata.packages_distributions()
    found: dict[str, set[str]] = {}
    for name in modules:
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in _OWN or top == "__main__":
            continue
        for distribution in _owners(name, owners) or [top]:
            found.setdefault(distribution, set()).add(top)
    return sorted(Dependency(name, installed_version(name) or "", sorted(tops)) for name, tops in found.items())


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution; None if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _owners(name: str, owners: Mapping[str, list[str]]) -> list[str]:
    """Distributions that own a module: of several that share a namespace package, those that have its file."""
    candidates = sorted(set(owners.get(name.partition(".")[0], ())))
    file = getattr(sys.modules.get(name), "__file__", None)
    if len(candidates) < 2 or file is None:
        return candidates
    return [one for one in candidates if _has_file(one, file)] or candidates


def _has_file(distribution: str, file: str) -> bool:
    files = metadata.distribution(distribution).files or ()
    real = os.path.realpath(file)
    return any(os.path.realpath(str(one.locate())) == real for one in files if one.name == os.path.basename(file))


def _is_user_code(name: str, places: tuple[str, ...]) -> bool:
    top = name.partition(".")[0]
    if top in _OWN or not places:
        return False
    if any(place.endswith((".so", ".pyd")) for place in places):
        return False  # machine code cannot be packed by value
    return not any(_is_installed(name, os.path.realpath(place)) for place in places)


def _is_installed(name: str, place: str) -> bool:
    parts = place.split(os.sep)
    if any(part in _INSTALLED for part in parts) or place.startswith(_STANDARD_LIBRARY):
        return True
    if not os.path.isabs(place) or place.endswith(">"):
        return True  # frozen, or of unknown origin
    # The directory on sys.path that the module was found from: `pip install --target` puts its records beside it.
    depth = name.count(".") + (1 if parts[-1] in ("__init__.py", "__init__.pyc") else 0)
    root = os.sep.join(parts[: -1 - depth])
    return name.partition(".")[0] in _recorded(root)


@cache
def _recorded(root: str) -> frozenset[str]:
    """Top-level modules that a distribution installed into `root` itself. An editable one has no modules there."""
    tops: set[str] = set()
    for distribution in metadata.distributions(path=[root]):
        if distribution.read_text("RECORD") is None:
            continue  # metadata of a source tree
        for file in distribution.files or ():
            tops.add(file.parts[0].removesuffix(".py"))
    return frozenset(tops)


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
