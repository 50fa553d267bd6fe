"""A place for backups: which backups it has, and which of them to delete.

A backup's index is deleted before its objects. Blocks.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from styx.backup.copying import for_each, persistently
from styx.backup.index import DATA_PREFIX, INDEX_PREFIX, Index, decode_index, index_name
from styx.deployment.claim import NAME as CLAIM_NAME
from styx.errors import ConfigurationError
from styx.store.base import NotFound, Store, StoreReader

SHOWN_MAX: Final = 5
"""Names that an error lists."""


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
    """Raises `ConfigurationError` if backups of this app do not belong there."""
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
    """Deletes all backups but `present` and the newest others, `count` in all, and what interrupted ones older than
    `present` left; returns their names.
    """
    # Whatever a clock says that was set back.
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
