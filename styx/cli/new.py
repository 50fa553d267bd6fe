"""`styx new`: a small project that runs and passes its test as it is.

Its files come from templates: all of them are written, or none. An existing directory is never changed.
"""

from __future__ import annotations

import keyword
import re
import shlex
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.exit_codes import CommandFailed, usage_error
from styx.version import __version__

EXAMPLES: Final = """\
Examples:
  styx new shop
  styx new ~/projects/corner-shop

Exit codes:
  0    written
  1    it could not be written
  2    the name cannot be used, or there is such a directory
"""


FILES: Final = {
    "app.py.template": "$module.py",
    "test_app.py.template": "tests/test_$module.py",
    "README.md.template": "README.md",
    "pyproject.toml.template": "pyproject.toml",
    "gitignore.template": ".gitignore",
}
"""Templates and the files that they become; names and contents may use `$name`, `$module` and `$version`."""
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}+")
_TAKEN: Final = frozenset({"styx", "styx_dataflow", "test", "tests", "pytest", "msgspec"}) | sys.stdlib_module_names


def new(
    directory: Annotated[
        Path, Parameter(name="NAME", help="The project's name, or a path that ends in it. It must not exist.")
    ],
    /,
) -> None:
    """Write a small project: an app, its test, a README.

    The last part of NAME is the project's name: letters, digits, - and _,
    beginning with a letter.
    """
    from styx.cli.example_call import command

    directory = directory.expanduser()
    module = create_project(directory)
    print(f"Wrote {directory}: {module}.py, tests/test_{module}.py, README.md, pyproject.toml")
    print(f"Next: cd {shlex.quote(str(directory))} && {command(directory)} dev {module}:app")


def create_project(directory: Path) -> str:
    """Writes the project and returns its module's name; raises `CommandFailed`."""
    name = directory.name
    module = module_name(name)
    if directory.exists() or directory.is_symlink():
        raise usage_error(f"{directory} exists already; choose another name, or remove it first")
    try:
        directory.mkdir(parents=True)
        try:
            _write(directory, {"name": name, "module": module, "version": __version__})
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
    except OSError as error:
        raise CommandFailed(f"cannot write {directory}: {error.strerror}; choose a place you may write to") from None
    return module


def module_name(name: str) -> str:
    """The Python module for a project's name; raises `CommandFailed` if there is none."""
    module = name.replace("-", "_").lower()
    if _NAME.fullmatch(name) is None:
        raise usage_error(f"{name!r} is no project's name: it has letters, digits, - and _, and begins with a letter")
    if keyword.iskeyword(module) or module in _TAKEN:
        raise usage_error(f"a module named {module!r} would hide Python's own or another one; try {name}-app")
    return module


def _write(directory: Path, values: dict[str, str]) -> None:
    templates = files("styx.cli") / "project_template"
    for source, target in FILES.items():
        path = directory / Template(target).substitute(values)
        path.parent.mkdir(exist_ok=True)
        path.write_text(Template((templates / source).read_text("utf-8")).substitute(values), "utf-8")
