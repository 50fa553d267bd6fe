"""The audit log: a line about each refusal, as JSON in ASCII, at the logger `styx.audit`. Beyond a number of lines a
second, refusals are only counted.

No line holds a credential, a body, a query or an entity's key.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from styx.gateway.auth.limits import TokenBucket

LINES_PER_SECOND: Final = 10.0
LINES_AT_ONCE: Final = 50.0
TEXT_CHARS_MAX: Final = 200
"""Limit on the logged characters of a text that the sender chose, such as an origin."""

_log = logging.getLogger("styx.audit")


class Audit:
    """Writes the lines. `left_out` in a line is the number of refusals before it that have no line. Callers give the
    time.
    """

    def __init__(self) -> None:
        self._bucket = TokenBucket(LINES_AT_ONCE, 0.0)
        self._left_out = 0

    def refused(self, now_s: float, status: int, code: str, message: str, **facts: str | None) -> None:
        """Logs one refusal. `facts` that are None or empty are left out."""
        if not self._may_write(now_s):
            self._left_out += 1
            return
        line: dict[str, object] = {"event": "refused", "status": status, "code": code}
        line |= {name: text[:TEXT_CHARS_MAX] for name, text in facts.items() if text}
        line["message"] = message[: 2 * TEXT_CHARS_MAX]
        self._write(line)

    def flush(self, now_s: float) -> None:
        """Logs the number of refusals without lines, if a line may be written now. It is called from time to time."""
        if self._left_out and self._may_write(now_s):
            self._write({"event": "refused", "message": "no line was written about further refusals"})

    def _may_write(self, now_s: float) -> bool:
        return self._bucket.take(LINES_AT_ONCE, LINES_PER_SECOND, now_s) is None

    def _write(self, line: dict[str, object]) -> None:
        if self._left_out:
            line["left_out"], self._left_out = self._left_out, 0
        _log.warning("%s", json.dumps(line, separators=(",", ":")))
