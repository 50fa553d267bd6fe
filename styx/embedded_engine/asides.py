"""Setting a request of an embedded engine aside, once the engine has ended: checked against its log and its snapshots.

Blocks. It takes effect with the next start.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from styx.deployment.claim import NAME, decode_claim
from styx.embedded_engine.storage import LOG_NAME, OBJECTS_NAME, DataDirectory
from styx.log.base import Stream
from styx.log.sqlite import SqliteLog
from styx.set_aside import Place, examine, outcome, place_of, read, set_aside
from styx.store.directory import DirectoryStore


def put_aside(text: str, data_dir: Path, dry_run: bool) -> str:
    """Sets the request at SLOT:OFFSET aside, unless `dry_run`; says what it is and that it is, or could be.

    Raises `ConfigurationError` that says why it cannot be, `DataDirectoryInUse`, `EngineFailed` and `OSError`.
    """
    place = place_of(text)
    with _opened(data_dir) as (store, log):
        n_slots = decode_claim(store.get(NAME)).n_slots
        words = examine(place, n_slots, log, _replies(log, place[0]), store)
        if not dry_run:
            set_aside(store, place)
    return outcome(place, words, dry_run)


def put_asides(data_dir: Path) -> frozenset[Place]:
    """All that were. Raises `DataDirectoryInUse` and `OSError`."""
    with DataDirectory(data_dir):
        return read(DirectoryStore(data_dir / OBJECTS_NAME))


def _replies(log: SqliteLog, slot: int) -> Iterator[bytes]:
    """Asks the log when the first one is wanted: by then it is known that there is such a slot."""
    first, _ = log.bounds(Stream.REPLIES, slot)
    for record in log.read(Stream.REPLIES, slot, first):
        yield record.payload


@contextmanager
def _opened(data_dir: Path) -> Iterator[tuple[DirectoryStore, SqliteLog]]:
    with DataDirectory(data_dir):
        log = SqliteLog(data_dir / LOG_NAME)
        try:
            yield DirectoryStore(data_dir / OBJECTS_NAME), log
        finally:
            log.close()
