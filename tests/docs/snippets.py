"""The Python code in the project's documents, as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from styx.testing.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Snippet(NamedTuple):
    """One block of code; `line` is where it begins in its document."""

    document: str
    line: int
    code: str


def snippets(document: str) -> list[Snippet]:
    """All Python blocks of a document, given by its path from the repository's root."""
    text = (ROOT / document).read_text("utf-8")
    return [
        Snippet(document, text.count("\n", 0, found.start()) + 2, found.group(1)) for found in _PYTHON.finditer(text)
    ]


def name(snippet: Snippet) -> str:
    """What a test of it is called."""
    return f"line {snippet.line}"


def run(code: str, directory: Path) -> str:
    """Runs code as a script in `directory`, warnings as errors; returns what it printed."""
    script = directory / "snippet.py"
    script.write_text(code, "utf-8")
    # The examples are imported from the repository, as in a clone.
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(
        command,
        cwd=directory,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "reply.error" not in code and "dead_calls" not in code:  # else it makes mistakes on purpose, and is told of them
        assert done.stderr == ""
    return done.stdout
