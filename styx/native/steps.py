"""A generator that awaits one coroutine after the other, for `styx.native.first_step`; apart, because only the
interpreter can await in it. Paper section 5.2.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, Final

RETURNED: Final = object()
"""What it yields for a coroutine that has ended."""

Steps = Generator[Any, Coroutine[Any, Any, Any], None]


@types.coroutine
def steps(result: list[Any]) -> Steps:
    """Takes a coroutine with each `send`; puts what it returns into `result[0]`, and yields what it yields."""
    coroutine = yield
    while True:
        result[0] = yield from coroutine
        coroutine = yield RETURNED
