"""Keeps aiokafka's log readable while a broker is away: it reports each attempt to connect, dozens a second.

Each of its messages passes once in `REPEAT_SECONDS`, whatever its arguments. Changes nothing about levels or handlers,
and nothing about anybody else's messages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

REPEAT_SECONDS: Final = 30.0
"""How long the same message is held back after it was shown."""

_LOGGERS: Final = ("aiokafka", "aiokafka.conn", "aiokafka.producer.sender", "aiokafka.consumer.fetcher")


class Repeated(logging.Filter):
    """Holds back messages that were shown a short while ago. Remembers one time for each message text of the source."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._shown: dict[tuple[int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        key = record.levelno, str(record.msg)
        now = self._clock()
        if now - self._shown.get(key, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return False
        self._shown[key] = now
        return True


_repeated: Final = Repeated()


def calm() -> None:
    """Applies to aiokafka's loggers from now on; doing it again changes nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_repeated)
