"""The compiled form of the engine's hot modules: which modules have one, and whether it is the one to import.

`scripts/compile` puts an extension for each of them into a directory beside the sources. Importing this file, which
`styx` does first, lets Python find the extensions instead of the sources, if they are of these very sources and of this
interpreter; else everything runs in the plain form, which does the same and is slower. All or none: the extensions are
one library. Nothing else depends on the form.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

PLAIN_VARIABLE: Final = "STYX_PLAIN"
"""Environment variable: anything but nothing and 0 chooses the plain form."""
_PACKAGE: Final = Path(__file__).parent
DIRECTORY: Final = _PACKAGE / "_compiled"
MANIFEST: Final = "manifest.json"
"""In the directory: the digest of each source that was compiled, by module, and the names of what they share."""


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
        manifest = json.loads((directory / MANIFEST).read_bytes())
        digests, shared = dict(manifest["sources"]), list(manifest["shared"])
    except OSError:
        return Form({}, "nothing is compiled: run scripts/compile")
    except (ValueError, KeyError, TypeError):
        return Form({}, f"{directory / MANIFEST} is damaged: run scripts/compile again")
    for module, expected in digests.items():
        path = source_of(module, package)
        if not path.exists() or digest(path.read_bytes()) != expected:
            return Form({}, f"{path.name} has changed since it was compiled: run scripts/compile again")
    extensions = {name: directory / (name + EXTENSION_SUFFIXES[0]) for name in (*digests, *shared)}
    if not all(path.exists() for path in extensions.values()):
        return Form({}, "another interpreter's modules are compiled: run scripts/compile again")
    return Form(extensions, "")


FORM: Final = form_of(DIRECTORY, _PACKAGE, os.environ.get(PLAIN_VARIABLE, ""))


def name(form: Form) -> str:
    """In a word, for results and charts."""
    return "plain" if form.reason else "compiled"


def describe(form: Form) -> str:
    """In a few words, for people."""
    return f"plain ({form.reason})" if form.reason else "compiled"


if FORM.extensions and not any(isinstance(finder, Finder) for finder in sys.meta_path):
    sys.meta_path.insert(0, Finder(FORM.extensions))
