"""Hatchling's hook: with `STYX_COMPILE=1` a wheel holds the compiled form, for one interpreter and one platform.

Without it a wheel is of source only, for any interpreter, and runs in the plain form. An sdist and an editable
installation are never compiled; in a clone `scripts/compile` does that. `scripts/wheels` and cibuildwheel
(pyproject.toml) set the variable.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE: Final = "STYX_COMPILE"
_COMPILES: Final = "image-build"
"""The dependency group that builds the compiled form."""


class CompiledWheel(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles before the wheel's files are collected. If compiling fails, the build fails."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """The requirements for compiling, beside hatchling: mypyc, and the libraries that the compiled modules
        import.
        """
        if not self._wanted:
            return []
        pyproject = tomllib.loads(Path(self.root, "pyproject.toml").read_text("utf-8"))
        project = pyproject["project"]
        typed_by = [*project["dependencies"], *project["optional-dependencies"]["kafka"]]
        return [*typed_by, *pyproject["dependency-groups"][_COMPILES]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is hatchling's name for the kind of wheel."""
        if version == "editable" or not self._wanted:
            return
        subprocess.run([sys.executable, str(Path(__file__).with_name("build.py"))], check=True, cwd=self.root)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append("/styx/_compiled/*")

    @property
    def _wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get(VARIABLE, "0") not in ("", "0")
