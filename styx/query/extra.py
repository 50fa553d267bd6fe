"""The packages of the extra `sql`, which only Parquet and SQL need."""

from __future__ import annotations

from importlib.util import find_spec

from styx.errors import ConfigurationError
from styx.process.extras import lacking


def require(what: str, *modules: str) -> None:
    """Raises `ConfigurationError`, which says what to install, if one of the modules is missing for `what`."""
    for module in modules:
        if find_spec(module) is None:
            raise ConfigurationError(lacking(what, module, "sql"))
