"""The parts of `scripts/compile`, which are in no package."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import styx


def script(name: str) -> ModuleType:
    """A file of `scripts/compile.d` as a module."""
    path = Path(styx.__file__).parents[1] / "scripts" / "compile.d" / f"{name}.py"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
