"""Setting a request of an embedded engine aside, once that has ended: checked against its log and its snapshots.

Blocks. It takes effect with the next start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from styx.data_directory import DataDirectory
from styx.embedded_engine.deployment import DEPLOYMENT_NAME, Deployment
from styx.embedded_engine.storage import LOG_NAME, OBJECTS_NAME
from styx.log.base import Stream
from styx.log.sqlite import SqliteLog
from styx.store.directory import DirectoryStore
from styx.worker.aside_check import examine
from styx.worker.set_aside import Place, place_of, read, set_aside


def put_aside(text: str, data_dir: Path, only_say: bool) -> str:
    """What the request at SLOT:OFFSET is; it is set aside then, unless `only_say`.

    Raises `ConfigurationError` that says why it cannot be, `DataDirectoryInUse`, `EngineFailed` and `OSError`.
    """
    place = place_of(text)
    with _opened(data_dir) as (store, log):
        n_slots = msgspec.json.decode(store.get(DEPLOYMENT_NAME), type=Deployment).n_slots
        slot = min(place[0], n_slots - 1)
        first, _ = log.bounds(Stream.REPLIES, slot)
        replies = (record.payload for record in log.read(Stream.REPLIES, slot, first))
        words = examine(place, n_slots, log, replies, store)
        if not only_say:
            set_aside(store, place)
    return words


def put_asides(data_dir: Path) -> frozenset[Place]:
    """All that were. Raises `DataDirectoryInUse` and `OSError`."""
    with DataDirectory(data_dir):
        return read(DirectoryStore(data_dir / OBJECTS_NAME))


@contextmanager
def _opened(data_dir: Path) -> Iterator[tuple[DirectoryStore, SqliteLog]]:
    with DataDirectory(data_dir):
        log = SqliteLog(data_dir / LOG_NAME)
        try:
            yield DirectoryStore(data_dir / OBJECTS_NAME), log
        finally:
            log.close()
