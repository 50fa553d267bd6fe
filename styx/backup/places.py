"""A place for backups: its backups, the deletion of old ones, and the access to its objects, which restore and take use
for the cluster's store too.

A request to a store that is out of reach is repeated, a limited number of times. Several objects are copied or deleted
at once. A backup's index is deleted before its objects, so that no part of a backup counts as one. All functions block.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Final, TypeVar

from styx.backup.index import DATA_PREFIX, INDEX_PREFIX, Index, decode_index, index_name
from styx.deployment.claim import NAME as CLAIM_NAME
from styx.errors import ConfigurationError
from styx.store.base import NotFound, Store, StoreReader

COPIES_AT_ONCE: Final = 4
"""Objects that are copied at a time; each is in memory as a whole."""
ATTEMPTS_MAX: Final = 5
"""Attempts of a request to a store that is out of reach."""
FIRST_PAUSE_SECONDS: Final = 0.25
"""The pause after the first failure; each further pause is twice as long."""
SHOWN_MAX: Final = 5
"""Names that an error lists."""

T = TypeVar("T")


def persistently(ask: Callable[[], T]) -> T:
    """The result of `ask`, which is repeated after an `OSError`. Raises the last one; one that is a
    `ConfigurationError` too, such as for wrong keys, at once.
    """
    for attempt in range(ATTEMPTS_MAX):
        try:
            return ask()
        except OSError as error:
            if attempt == ATTEMPTS_MAX - 1 or isinstance(error, ConfigurationError):
                raise
        time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
    raise AssertionError


def for_each(names: Iterable[str], do: Callable[[str], None]) -> None:
    """Calls `do` for each name, several at once. Raises the first exception, when the calls under way have ended."""
    with ThreadPoolExecutor(COPIES_AT_ONCE, thread_name_prefix="styx-copy") as threads:
        under_way = [threads.submit(do, name) for name in names]
        try:
            for ended in as_completed(under_way):
                ended.result()
        except BaseException:
            threads.shutdown(wait=True, cancel_futures=True)
            raise


def backups(place: StoreReader) -> list[str]:
    """Names of all whole backups, the oldest first."""
    return [name.removeprefix(INDEX_PREFIX) for name in persistently(lambda: place.list(INDEX_PREFIX))]


def read_index(place: StoreReader, backup: str = "") -> tuple[str, Index]:
    """(name, index) of a backup, by default the newest. Raises `ConfigurationError` if there is none, and `Damaged`."""
    names = backups(place)
    if not names:
        raise ConfigurationError("there is no backup here: give the --to of styx backup")
    name = backup or names[-1]
    if name not in names:
        raise ConfigurationError(f"there is no backup {name!r} here; the last ones are {', '.join(names[-SHOWN_MAX:])}")
    try:
        return name, decode_index(name, persistently(lambda: place.get(index_name(name))))
    except NotFound:
        raise ConfigurationError(f"the backup {name} has just been deleted") from None


def check_place(place: Store, app: str) -> None:
    """Raises `ConfigurationError` if the place is a cluster's store, or has backups of another app."""
    if persistently(lambda: place.list(CLAIM_NAME)):
        raise ConfigurationError("--to is the store of a cluster: use another bucket or prefix for backups")
    if backups(place):
        name, index = read_index(place)
        if index.app != app:
            raise ConfigurationError(
                f"--to has backups of app {index.app!r}, {name} for one, and this store is of app {app!r}: "
                "use another bucket or prefix"
            )


def keep_newest(place: Store, count: int, present: str) -> list[str]:
    """Deletes all backups but `present` and the newest others, `count` in all, and the objects of interrupted backups
    older than `present`. Returns the names of all these backups.
    """
    # `present` stays even if a clock that was set back gave it the oldest name.
    others = [name for name in backups(place) if name != present]
    old = others[: max(0, len(others) - count + 1)]
    for name in old:
        persistently(partial(place.delete, index_name(name)))
    kept = set(backups(place))
    leftovers: dict[str, list[str]] = {}
    for name in persistently(lambda: place.list(DATA_PREFIX)):
        backup = name.removeprefix(DATA_PREFIX).partition("/")[0]
        if backup in old or (backup not in kept and backup < present):
            leftovers.setdefault(backup, []).append(name)
    for_each(
        [name for names in leftovers.values() for name in names],
        lambda name: persistently(lambda: place.delete(name)),
    )
    return sorted(leftovers)
