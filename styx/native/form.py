"""The compiled form of the engine's hot modules: which modules have one, and whether it is the one to import.

`scripts/compile` puts an extension for each of them into a directory beside the sources. Importing this file, which
`styx` does first, lets Python find the extensions instead of the sources, if they are of these very sources, those they
import included, of this interpreter, and can be loaded; else everything runs in the plain form, which does the same and
is slower. All or none: the extensions are one library. Nothing else depends on the form.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

PLAIN_VARIABLE: Final = "STYX_PLAIN"
"""Environment variable: anything but nothing and 0 chooses the plain form."""
_PACKAGE: Final = Path(__file__).parents[1]
DIRECTORY: Final = _PACKAGE / "_compiled"
MANIFEST: Final = "manifest.json"
"""In the directory: the digests of the sources, by module, and the extensions' sizes in bytes, by name, that of the
library they share among them.
"""
_SHARED: Final = "__mypyc"
"""How that one's name ends."""


class Form(NamedTuple):
    """Files of the extensions by module; none in the plain form, and then `reason` says why."""

    extensions: dict[str, Path]
    reason: str


class Finder(MetaPathFinder):
    """Finds the extensions, and nothing else."""

    def __init__(self, extensions: dict[str, Path]) -> None:
        self._extensions = extensions

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As `importlib` has it."""
        extension = self._extensions.get(fullname)
        if extension is None:
            return None
        return spec_from_file_location(fullname, extension, loader=ExtensionFileLoader(fullname, str(extension)))


def digest(source: bytes) -> str:
    """Identifies a source."""
    return blake2b(source, digest_size=16).hexdigest()


def source_of(module: str, package: Path = _PACKAGE) -> Path:
    """The file of a module such as `styx.worker.slot`."""
    return package.joinpath(*module.split(".")[1:]).with_suffix(".py")


def form_of(directory: Path, package: Path, plain: str) -> Form:
    """What to import; `plain` is the environment variable's value. Never raises for what it finds in the directory."""
    if plain not in ("", "0"):
        return Form({}, f"{PLAIN_VARIABLE} is set")
    try:
        manifest = (directory / MANIFEST).read_bytes()
    except OSError:
        return Form({}, "nothing is compiled: run scripts/compile")
    try:
        return _described(json.loads(manifest), directory, package)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Form({}, f"{directory / MANIFEST} is damaged: run scripts/compile again")


def _described(manifest: Any, directory: Path, package: Path) -> Form:
    for module, expected in manifest["sources"].items():
        path = source_of(module, package)
        if not path.exists() or digest(path.read_bytes()) != expected:
            return Form({}, f"{path.name} has changed since it was compiled: run scripts/compile again")
    extensions: dict[str, Path] = {}
    for name, size in manifest["extensions"].items():
        path = extensions[name] = directory / (name + EXTENSION_SUFFIXES[0])
        if not path.exists():
            return Form({}, "another interpreter's modules are compiled: run scripts/compile again")
        if path.stat().st_size != size:  # half a library ends the process that loads it
            return Form({}, f"{path.name} is damaged: run scripts/compile again")
    if not extensions:
        raise ValueError
    return Form(extensions, "")


def loaded(form: Form) -> Form:
    """Lets Python find the extensions, unless the library they share cannot be loaded here: then, none of them."""
    if not form.extensions:
        return form
    finder = Finder(form.extensions)
    sys.meta_path.insert(0, finder)
    try:
        for name in form.extensions:
            if name.endswith(_SHARED):
                import_module(name)
    except ImportError as error:
        sys.meta_path.remove(finder)
        return Form({}, f"what is compiled cannot be loaded, {error}: run scripts/compile again")
    return form


FORM: Final = loaded(form_of(DIRECTORY, _PACKAGE, os.environ.get(PLAIN_VARIABLE, "")))


def name(form: Form) -> str:
    """In a word, for results and charts."""
    return "plain" if form.reason else "compiled"


def describe(form: Form) -> str:
    """In a few words, for people."""
    return f"plain ({form.reason})" if form.reason else "compiled"
