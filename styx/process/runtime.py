"""The runtime of this process: the interpreter, its minor version, and the engine's form.

Another runtime words Python's own errors differently, and an error's text is part of a reply.
"""

from __future__ import annotations

import platform
import sys
from typing import Final

from styx.native.form import FORM, name

RUNTIME: Final = f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}, {name(FORM)} form"
"""For example `CPython 3.11, compiled form`."""
FACT: Final = "runtime"
"""What it is called among the facts of a worker's hello."""
