"""`python -m benchmarks.reference`: one subcommand for each reference line. Measures nothing itself.

Exit status 0: measured. 1: something is wrong with what was seen, or broke. 2: an option is wrong, or PostgreSQL is
not there.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import Final

from asyncpg import PostgresError

from benchmarks.driver.clients import ClientFailed
from benchmarks.reference import bare, echo, line, postgres
from styx.cli.serving import run_loop
from styx.errors import ConfigurationError, StyxError
from styx.testing.cluster.child import ChildFailed

USAGE: Final = 2
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        if options.command == "bare":
            return bare.run(options)
        return run_loop((echo.run if options.command == "echo" else postgres.run)(options))
    except ConfigurationError as error:
        line.say(str(error))
        return USAGE
    except (StyxError, ClientFailed, ChildFailed, OSError, PostgresError) as error:
        line.say(f"{type(error).__name__}: {error}")
        return line.FAILED
    except KeyboardInterrupt:
        line.say("interrupted")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reference",
        description="What the same work costs without the engine: run it beside a measurement of the engine.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="LINE")
    for name, module, text in (
        ("bare", bare, "the bare loop in one process"),
        ("echo", echo, "through Kafka to a process that only echoes"),
        ("postgres", postgres, "the same transfers in PostgreSQL"),
    ):
        module.add_options(commands.add_parser(name, help=text, description=module.__doc__))
    return parser


if __name__ == "__main__":
    sys.exit(main())
