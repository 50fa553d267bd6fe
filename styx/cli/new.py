"""`styx new`: a small project that runs and passes its test as it is."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

EXAMPLES: Final = """\
Examples:
  styx new shop
  styx new ~/projects/corner-shop

Exit codes:
  0    written
  1    it could not be written
  2    the name cannot be used, or there is such a directory
"""


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
    from styx.cli.project import create_project

    directory = directory.expanduser()
    module = create_project(directory)
    print(f"Wrote {directory}: {module}.py, tests/test_{module}.py, README.md, pyproject.toml")
    print(f"Next: cd {shlex.quote(str(directory))} && {command(directory)} dev {module}:app")
