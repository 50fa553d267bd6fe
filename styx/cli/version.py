"""The output of `styx --version`: the version, the engine's form, and the interpreter.

It needs no extra, so that it works in a bare installation.
"""

from __future__ import annotations

import platform

from styx.native.form import FORM, describe
from styx.version import __version__


def version_text() -> str:
    """One line such as `0.1.0 (compiled, CPython 3.11.7)`."""
    return f"{__version__} ({describe(FORM)}, {platform.python_implementation()} {platform.python_version()})"
