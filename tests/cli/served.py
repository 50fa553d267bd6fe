"""Commands that serve, as processes of their own: what they begin with, and when they serve."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from styx.testing.patience import PATIENCE_SECONDS

STYX = [sys.executable, "-m", "styx"]


def unset() -> dict[str, str]:
    """The environment, without what tells commands of styx anything."""
    return {name: value for name, value in os.environ.items() if not name.startswith("STYX_")}


def until_served(process: subprocess.Popen[str]) -> list[str]:
    """The lines that it has printed; it serves now."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith("Ctrl-C"):
            return lines
    pytest.fail(f"it ended before it served: {lines}")


@contextmanager
def up(
    directory: Path, environment: Mapping[str, str], *options: str
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """`styx up` of `shop.py` there, which serves: the process, and what it has printed."""
    words = [*STYX, "up", "shop:app", *options]
    with subprocess.Popen(
        words, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process, until_served(process)
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_SECONDS)
