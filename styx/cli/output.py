"""The form in which commands print a JSON value: one line for programs, indented for people."""

from __future__ import annotations

import sys


def readable(result: str) -> str:
    """The JSON text as it is to be printed."""
    if not sys.stdout.isatty() or result[0] not in "[{":
        return result
    import msgspec

    return msgspec.json.format(result, indent=2)
