"""The golden files' format: prose, commands, `----`, and what the commands must print, up to a blank line.

Text in, text out; knows no command. `rewritten` keeps every word of prose and changes only the expected output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

SEPARATOR = "----"


class Entry(NamedTuple):
    """Comment lines, commands, and the lines they must print. A file's last comment may stand without a command."""

    comment: list[str]
    commands: list[str]
    expected: list[str]


def parse(text: str) -> list[Entry]:
    """The entries of a file; raises `ValueError` for commands without their separator."""
    entries: list[Entry] = []
    comment: list[str] = []
    commands: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line == SEPARATOR and commands:
            entries.append(Entry(comment, commands, list(iter(partial(next, lines, ""), ""))))
            comment, commands = [], []
        elif not line or line.startswith("#"):
            if commands:
                raise ValueError(f"the command {commands[-1]!r} is not followed by a line {SEPARATOR!r}")
            comment.append(line)
        else:
            commands.append(line)
    if comment or commands:
        entries.append(Entry(comment, commands, []))
    return entries


def rewritten(entries: list[Entry], execute: Callable[[str], list[str]]) -> str:
    """The file with what `execute` prints now."""
    parts: list[str] = []
    for entry in entries:
        parts += entry.comment
        if entry.commands:
            output = [line for command in entry.commands for line in execute(command)]
            parts += [*entry.commands, SEPARATOR, *output, ""]
    return "\n".join(parts).rstrip("\n") + "\n"
