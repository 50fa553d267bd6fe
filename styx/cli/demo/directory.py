"""Where a demo keeps its data: where it was told to, or in a temporary directory that disappears when all is well."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class DemoDirectory:
    """A directory that exists; `keep` decides at the end, and an error in between keeps it."""

    path: Path
    keep: bool = True


@contextmanager
def demo_directory(wanted: Path | None) -> Iterator[DemoDirectory]:
    """`wanted`, made if it is missing, or a new temporary directory."""
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
    directory = DemoDirectory(Path(tempfile.mkdtemp(prefix="styx-demo-")) if wanted is None else wanted)
    try:
        yield directory
    except KeyboardInterrupt:
        directory.keep = wanted is not None
        raise
    finally:
        if directory.keep:
            print(f"The data is kept in {directory.path}", file=sys.stderr)
        else:
            shutil.rmtree(directory.path, ignore_errors=True)
