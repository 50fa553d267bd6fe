"""A log line as a JSON object, and the setting that asks for it. Imports little, for commands that only print one
error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from styx.errors import ConfigurationError

FORMAT_VARIABLE: Final = "STYX_LOG_FORMAT"
FIELDS: Final = "styx"
"""The attribute of log records that holds what they are about."""
_FORMATS: Final = ("text", "json")


def json_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether lines are to be JSON; raises `ConfigurationError` if the variable says something else."""
    wanted = environment.get(FORMAT_VARIABLE, "") or "text"
    if wanted not in _FORMATS:
        raise ConfigurationError(f"{FORMAT_VARIABLE} is text or json, got {wanted!r}")
    return wanted == "json"


def json_line(time_s: float, level: str, logger: str, process: str, fields: dict[str, Any]) -> str:
    """One line, without its end; `time_s` in seconds since 1970."""
    time = datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds")
    first = {"time": time, "level": level, "logger": logger, "process": process}
    return msgspec.json.encode({**first, **fields}, enc_hook=str).decode("utf-8", "replace")
