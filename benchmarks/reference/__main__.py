"""`python -m benchmarks.reference LINE`: one command for each reference line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

LINES: Final = {
    "bare": "the bare loop in one process: no log, no network, no engine",
    "echo": "through Kafka to a process that only echoes",
    "postgres": "the same transfers in PostgreSQL",
    "pgbench": "the same by PostgreSQL's own load generator in C, with and without fsync",
    "http": "over HTTP: styx dev beside FastAPI, asyncpg and PostgreSQL, in turns",
}
"""By the name of the module of this package that measures it."""
_PROGRAM: Final = "python -m benchmarks.reference"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="What the same work costs without the engine: run it beside a measurement of the engine.",
        epilog="\n".join(f"{name:<10}{text}; {_PROGRAM} {name} --help" for name, text in LINES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chosen.add_argument("line", choices=LINES, metavar="LINE", help=f"one of {', '.join(LINES)}; then its own options")
    line: str = chosen.parse_args(words[:1]).line
    try:
        module = import_module(f"benchmarks.reference.{line}")
    except ModuleNotFoundError as error:
        chosen.error(f"{line} needs {error.name}, from the extra 'bench'; scripts/bench installs it")
    parser = argparse.ArgumentParser(prog=f"{_PROGRAM} {line}", description=module.__doc__)
    module.add_options(parser)
    return int(module.run(parser.parse_args(words[1:])))


if __name__ == "__main__":
    sys.exit(main())
