"""The messages of `ctx.log`: kept with the transaction's run, and written only if that run counts.

Texts and plain values are kept, never objects of the user's. The shells format and write them, once the transaction has
ended.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.context import Context

LINES_MAX: Final = 1_000
"""Lines of one transaction on one slot; further ones are counted."""
LINES_BYTES_MAX: Final = 64 * 1024
"""Characters of these lines, messages and fields together."""
MESSAGE_CHARS_MAX: Final = 4_096
"""One message, or one field's value; what is longer is cut."""

_PLAIN: Final = (str, int, float, bool, type(None))


class Line(NamedTuple):
    """One line, with its place in the transaction's serial order, and the function that said it."""

    chain: bytes
    path: bytes
    level: int
    message: str
    fields: dict[str, Any]
    operator: str
    key: Any
    function: str


class Lines:
    """The lines of one run of a transaction on one slot; `left_out` were over a limit."""

    __slots__ = ("_chars", "left_out", "lines")

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.left_out = 0
        self._chars = 0

    def add(self, line: Line) -> None:
        """Keeps the line if there is room; else counts it."""
        self._chars += len(line.message) + sum(len(name) + len(str(value)) for name, value in line.fields.items())
        if len(self.lines) >= LINES_MAX or self._chars > LINES_BYTES_MAX:
            self.left_out += 1
        else:
            self.lines.append(line)

    def cut(self, place: tuple[bytes, bytes]) -> None:
        """Drops the lines behind a place, (chain, path), in serial order."""
        self.lines = [line for line in self.lines if (line.chain, line.path) < place]


class FunctionLog:
    """`ctx.log("paid", amount=5)`, or `ctx.log.warning(…)` and so on: a message and named values.

    Nothing is written while the function runs. When the transaction has ended, each line is written once, in the order
    of the serial execution. A run that did not count writes nothing. After an abort the lines are marked as aborted.
    """

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def __call__(self, message: object, /, **fields: object) -> None:
        """As `info`."""
        self._add(logging.INFO, message, fields)

    def debug(self, message: object, /, **fields: object) -> None:
        """At level DEBUG, which is not shown unless logging is told to."""
        self._add(logging.DEBUG, message, fields)

    def info(self, message: object, /, **fields: object) -> None:
        """At level INFO."""
        self._add(logging.INFO, message, fields)

    def warning(self, message: object, /, **fields: object) -> None:
        """At level WARNING."""
        self._add(logging.WARNING, message, fields)

    def error(self, message: object, /, **fields: object) -> None:
        """At level ERROR."""
        self._add(logging.ERROR, message, fields)

    def _add(self, level: int, message: object, fields: dict[str, object]) -> None:
        context = self._context
        said = {name: _kept(value) for name, value in fields.items()}
        spec = context._spec
        line = Line(
            context._chain_id, context._path, level, _text(message), said, spec.operator, context._key, spec.name
        )
        context._env.add_line(line)


def _text(message: object) -> str:
    text = message if type(message) is str else shown(message)
    return text if len(text) <= MESSAGE_CHARS_MAX else f"{text[:MESSAGE_CHARS_MAX]}…"


def _kept(value: object) -> Any:
    """A copy that no later change reaches: plain values as they are, all else as text."""
    if type(value) is str:
        return _text(value)
    return value if type(value) in _PLAIN else shown(value)
