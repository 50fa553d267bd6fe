"""Copying objects from one store to another, several at once, each of them checked while it is copied.

If a store is out of reach, a copy is repeated, a named number of times. The source is never changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, TypeVar

from styx.errors import ConfigurationError

COPIES_AT_ONCE: Final = 4
"""Each has one object in memory."""
ATTEMPTS_MAX: Final = 5
"""How often a store that is out of reach is asked."""
FIRST_PAUSE_SECONDS: Final = 0.25
"""Pause after the first failure; each further one is twice as long."""

T = TypeVar("T")


def persistently(ask: Callable[[], T]) -> T:
    """What `ask` gives; raises the last of its `OSError`s. Keys and rights that are wrong are wrong at once."""
    for attempt in range(ATTEMPTS_MAX):
        try:
            return ask()
        except OSError as error:
            if attempt == ATTEMPTS_MAX - 1 or isinstance(error, ConfigurationError):
                raise
        time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
    raise AssertionError


def for_each(names: Iterable[str], do: Callable[[str], None]) -> None:
    """Does it for all of them; the first exception ends it, and is raised once what was begun has ended."""
    with ThreadPoolExecutor(COPIES_AT_ONCE, thread_name_prefix="styx-copy") as threads:
        under_way = [threads.submit(do, name) for name in names]
        try:
            for ended in as_completed(under_way):
                ended.result()
        except BaseException:
            threads.shutdown(wait=True, cancel_futures=True)
            raise
