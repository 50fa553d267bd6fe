"""Nothing imports upward: the table of layers in docs/architecture.md, held against every import of `styx`.

`TYPE_CHECKING` imports count, and those within functions.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[1]
ARCHITECTURE: Final = ROOT / "docs/architecture.md"
_NAME: Final = re.compile(r"`([\w./]+)`")


class Place(NamedTuple):
    """Where a file or folder stands: the row, counted from the top, and its place in the row, from the left."""

    row: int
    column: int
    does_io: bool


def places(text: str) -> dict[str, Place]:
    """By name, such as `styx/cli/` and `styx/errors.py`; a name that is there twice raises `ValueError`."""
    section = text.partition("\n## Layers\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    found: dict[str, Place] = {}
    for number, (_, names, does_io) in enumerate(rows):
        for column, name in enumerate(_NAME.findall(names)):
            if name in found:
                raise ValueError(f"{name} is in the table twice")
            found[name] = Place(number, column, {"yes": True, "no": False}[does_io.strip()])
    return found


def owner(file: str, table: dict[str, Place]) -> str | None:
    """The name in the table that a file goes by: its own, or its folder's."""
    return max((name for name in table if file == name or (name[-1] == "/" and file.startswith(name))), default=None)


@cache
def files() -> dict[str, str]:
    """The repository's modules: file by dotted name."""
    paths = [path for top in ("styx", "proof", "benchmarks") for path in sorted((ROOT / top).rglob("*.py*"))]
    sources = [path.relative_to(ROOT) for path in paths if path.suffix in (".py", ".pyi")]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): str(path) for path in sources}


def imports(source: str) -> set[str]:
    """Dotted names: the module's, or its member's, that each import statement names, under `TYPE_CHECKING` too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
    return found


def imported_files(source: str) -> set[str]:
    """The repository's files among what a source imports."""
    return {file for name in imports(source) if (file := files().get(name) or files().get(name.rpartition(".")[0]))}


TABLE: Final = places(ARCHITECTURE.read_text())
OF_STYX: Final = sorted(file for file in files().values() if file.startswith("styx/"))
DOES_IO: Final = {
    *("_thread", "aiokafka", "asyncio", "concurrent", "ctypes", "fcntl", "glob", "http", "io", "linecache", "minio"),
    *("mmap", "multiprocessing", "obstore", "os", "pathlib", "queue", "random", "resource", "secrets", "select"),
    *("selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time"),
    *("urllib", "uuid", "uvicorn", "uvloop"),
}
"""Modules through which a process touches the world, its clock, chance or other threads."""
VALUES: Final = frozenset({"pathlib.PurePath", "random.Random", "uuid.UUID"})
"""What of them is only a value: a seeded generator, a path that is never opened."""


def problems(file: str, source: str) -> list[str]:
    """What `file`, with this source, imports that it must not."""
    here = TABLE[owner(file, TABLE) or "?"]
    found = []
    for other in sorted(imported_files(source)):
        name = owner(other, TABLE)
        if name is None:
            found.append(f"{file} imports {other}, which is above all of styx")
        elif name != owner(file, TABLE) and TABLE[name] <= here:
            found.append(f"{file} imports {other}, which is above it")
        elif TABLE[name].does_io and not here.does_io:
            found.append(f"{file} does no I/O, and imports {other}, which does")
    if not here.does_io:
        effects = sorted(n for n in imports(source) if n.partition(".")[0] in DOES_IO and n not in VALUES)
        found += [f"{file} does no I/O, and imports {name}" for name in effects]
    return found


def test_every_file_is_in_one_row_and_every_name_is_a_file() -> None:
    assert [file for file in OF_STYX if owner(file, TABLE) is None] == []
    assert [name for name in TABLE if not any(owner(file, TABLE) == name for file in OF_STYX)] == []
    assert {name for name in TABLE if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("file", OF_STYX)
def test_nothing_imports_upward(file: str) -> None:
    assert problems(file, (ROOT / file).read_text()) == []


PLANTED: Final = {
    "from styx.cluster.wire import Hello": "which is above it",
    "import proof.soak": "which is above all of styx",
    "from benchmarks import chart": "which is above all of styx",
    "if TYPE_CHECKING:\n    from styx.client.base import Client": "which is above it",
    "def function():\n    from styx.kafka.reader import KafkaReader": "which is above it",
    "import time": "does no I/O, and imports",
    "from random import random": "does no I/O, and imports",
    "from pathlib import Path": "does no I/O, and imports",
}


@pytest.mark.parametrize("line", PLANTED)
def test_an_import_that_is_planted_is_found(line: str) -> None:
    file = "styx/worker/worker.py"
    (problem,) = problems(file, f"{(ROOT / file).read_text()}\n{line}\n")
    assert PLANTED[line] in problem


def test_a_name_is_in_the_table_once() -> None:
    text = ARCHITECTURE.read_text()
    row = next(line for line in text.splitlines() if "`styx/errors.py`" in line and line.startswith("|"))
    with pytest.raises(ValueError, match="twice"):
        places(text.replace(row, f"{row}\n{row}"))
