"""The message for an optional dependency that is not installed: which extra has it."""

from __future__ import annotations

from typing import Final

DISTRIBUTION: Final = "styx-dataflow"
"""The project's name in package indexes; `styx` is another project there."""


def lacking(what: str, module: str | None, extra: str) -> str:
    """Says that `what` cannot import `module`, and how to install the extra that has it, released or from a clone."""
    return f"{what} lacks {module}: pip install '{DISTRIBUTION}[{extra}]', or pip install '.[{extra}]' in a clone"
