"""The command line: from arguments to an exit code, and from any error to a line that says what to do next.

Importing it costs next to nothing, and each command imports what it needs only when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from styx.process.extras import lacking


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command, by default the one in `sys.argv`; returns its exit code (see `styx.cli.exit_codes`).

    Errors become words on standard error; `STYX_DEBUG=1` in the environment adds their traceback.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if list(words) == ["--version"]:  # one line, however narrow the terminal; and without any extra
        print(version_text())
        return 0
    try:
        from styx.cli.application import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("cyclopts", "rich"):
            raise
        print(f"styx: {lacking('the command line', error.name, 'all')}", file=sys.stderr)
        return 1
    return run(words)


def version_text() -> str:
    """One line with the version, the engine's form and the interpreter: `0.1.0 (compiled, CPython 3.11.7)`."""
    import platform

    from styx.native.form import FORM, describe
    from styx.version import __version__

    return f"{__version__} ({describe(FORM)}, {platform.python_implementation()} {platform.python_version()})"
