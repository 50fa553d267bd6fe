"""The sources that a module's compiled form is made of besides its own: those it imports, and what those import.

The compiler puts the values of their constants, and what it knows of their classes, into the code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

_PACKAGE = "styx"


def dependencies(modules: Iterable[str], root: Path) -> dict[str, Path]:
    """The files below `root` by module, such as `styx.worker.slot`; those of `modules` are among them.

    A package's own file is the module `__init__` in it.
    """
    found: dict[str, Path] = {}
    todo = list(modules)
    while todo:
        name = todo.pop()
        for module in (name, f"{name}.__init__"):
            path = root.joinpath(*module.split(".")).with_suffix(".py")
            if module not in found and path.is_file():
                found[module] = path
                todo += _imported(path)
    return found


def _imported(path: Path) -> list[str]:
    """The names that a file imports from the package and that may be modules; imports for type checking are
    included.
    """
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".")[0] == _PACKAGE]
