"""Exit codes, and the error that ends a command with one of them."""

from __future__ import annotations

from typing import Final

SUCCESS: Final = 0
FAILURE: Final = 1
"""The command was right, and failed: an abort, no server, no reply, an audit that does not hold."""
USAGE: Final = 2
"""The command was wrong: an option, a name or an argument must be changed first."""
ABSENT: Final = 3
"""The command was right, and the entity does not exist."""
INTERRUPTED: Final = 130
"""Ended by Ctrl-C, as shells have it."""
TERMINATED: Final = 143
"""Ended by SIGTERM, as shells have it."""


class CommandFailed(Exception):
    """Ends a command: `message` goes to standard error (one or two lines, the last one says what to do next)."""

    def __init__(self, message: str, exit_code: int = FAILURE) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


def usage_error(message: str) -> CommandFailed:
    """A `CommandFailed` for a command that must be typed differently."""
    return CommandFailed(message, USAGE)
