"""Whether a directory can keep an engine's data, found out before the engine starts."""

from __future__ import annotations

import os
from pathlib import Path


def problem_of(directory: Path) -> str | None:
    """Why the directory cannot keep the data, None if it can. A missing directory is made."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return "it is no directory"
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(directory, os.W_OK | os.X_OK) else "it cannot be written to"
