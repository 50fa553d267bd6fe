"""The form of a process's log lines: for people, or, with `STYX_LOG_FORMAT=json`, one JSON object a line, for programs.

A line that is written while a function runs gets the function, its entity and its transaction. The root logger is set
up once, and only in a process that this package owns.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final

import msgspec

from styx.reports.current_function import running
from styx.reports.json_lines import FIELDS, json_line, json_wanted
from styx.reports.mistakes import key_text

_FOR_PEOPLE: Final = ("styx.carried", "styx.functions", "styx.mistakes", "styx.requests", "styx.dev")
"""Loggers whose lines stand by themselves on a developer's terminal."""

_replaying: list[Callable[[], bool]] = []


def set_up_logging(name: str, *, terminal: bool = False) -> None:
    """Lines of the process `name` go to standard error; of other libraries only warnings and errors.

    `terminal`: lines about the app's functions and requests are for a developer's terminal, without time and name.
    """
    handler = logging.StreamHandler(sys.stderr)
    if json_wanted():
        handler.setFormatter(JsonFormatter(name))
    else:
        text = f"%(asctime)s %(levelname)s {name.replace('%', '%%')} %(name)s: %(message)s"
        handler.setFormatter(_TerminalFormatter(text) if terminal else logging.Formatter(text))
    handler.addFilter(add_function)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("styx").setLevel(logging.INFO)


def replaying_is(callback: Callable[[], bool]) -> None:
    """Sets the callback that says whether the functions that run now are run again from the log."""
    _replaying[:] = [callback]


def add_function(record: logging.LogRecord) -> bool:
    """A filter that lets everything pass: a record made inside a function gets what it is about."""
    if not hasattr(record, FIELDS):
        found = running(sys._getframe(1))
        if found is not None:
            fields = {
                "operator": found.operator,
                "key": key_text(found.key),
                "function": found.function,
                "tid": found.tid,
                "replaying": any(callback() for callback in _replaying),
            }
            setattr(record, FIELDS, fields)
    return True


class JsonFormatter(logging.Formatter):
    """Time (ISO 8601, UTC), level, logger, process, message; what the record is about; an exception's traceback."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """As `Formatter.format`; never raises, whatever the record holds."""
        fields: dict[str, Any] = {"message": _message(record), **getattr(record, FIELDS, {})}
        if record.exc_info and record.exc_info[0] is not None:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info)).splitlines()
        if record.stack_info:
            fields["stack"] = record.stack_info.splitlines()
        try:
            return json_line(record.created, record.levelname, record.name, self._process, fields)
        except Exception:  # noqa: BLE001 - half a surrogate, a number beyond 64 bits: a line must not be lost
            safe = {name: _encodable(value) for name, value in fields.items()}
            return json_line(record.created, record.levelname, record.name, self._process, safe)


def _encodable(value: object) -> Any:
    """The value itself wherever JSON has it, else its text."""
    try:
        msgspec.json.encode(value, enc_hook=str)
    except Exception:  # noqa: BLE001 - as in `format`
        return ascii(value)
    return value


class _TerminalFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage() if record.name in _FOR_PEOPLE else super().format(record)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - the caller's arguments: a wrong one must not cost the line
        return f"{record.msg!r} with {len(record.args or ())} arguments that do not fit: {error}"
