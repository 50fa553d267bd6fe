"""The runtime of a process: the interpreter, its minor version, and the engine's form; and the object in the store that
records on which one a cluster's workers run.

Another runtime words Python's own errors differently, and an error's text is part of a reply.
"""

from __future__ import annotations

import platform
import sys
from typing import Final

from styx.native.form import FORM, name
from styx.store.base import NotFound, Store, StoreReader

RUNTIME: Final = f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}, {name(FORM)} form"
"""For example `CPython 3.11, compiled form`."""
FACT: Final = "runtime"
"""Its name among the facts of a worker's hello."""
NAME: Final = "runtime"
"""The object in the store."""


def read_runtime(store: StoreReader) -> str:
    """The runtime of the last workers; empty if that is not known. Blocks; raises `OSError`."""
    try:
        return store.get(NAME).decode("utf-8", "replace")
    except NotFound:
        return ""


def write_runtime(store: Store, runtime: str) -> None:
    """Records the workers' runtime. Blocks; raises `OSError`."""
    store.put(NAME, runtime.encode())
