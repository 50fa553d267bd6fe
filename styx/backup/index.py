"""A backup's index: its app, its snapshot, and each of its objects with size and digest.

A place for backups has an index for each backup, `backups/NAME`, and the backup's objects under `data/NAME/`, by their
names in the store. The index is written last: without it there is no backup.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import blake2b
from typing import Final

import msgspec

from styx.errors import EngineFailed

INDEX_PREFIX: Final = "backups/"
DATA_PREFIX: Final = "data/"
FORMAT: Final = 1
_DIGEST_BYTES: Final = 16


class Damaged(EngineFailed):
    """An object of a backup, or of the store that it is taken from, is not as it was stored."""


class Entry(msgspec.Struct, frozen=True):
    """An object: its name in the store, its size in bytes, and the digest of its content."""

    name: str
    size: int
    digest: str


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """`taken_at` is the time at which the backup began, in UTC. Its snapshot, whose object is `manifest`, is a little
    older. `styx` is the version that wrote the index.
    """

    format: int = FORMAT
    styx: str
    app: str
    taken_at: str
    generation: int
    epoch: int
    app_version: int
    manifest: str
    objects: list[Entry]

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return sum(entry.size for entry in self.objects)


def backup_name(taken_at: datetime) -> str:
    """The name of a backup that began at this time in UTC. Names sort by time."""
    return f"{taken_at:%Y%m%dT%H%M%S}.{taken_at.microsecond // 1000:03d}Z"


def index_name(backup: str) -> str:
    """The name of the index's object."""
    return f"{INDEX_PREFIX}{backup}"


def object_name(backup: str, name: str) -> str:
    """The name under which a backup keeps the store's object `name`."""
    return f"{DATA_PREFIX}{backup}/{name}"


def entry_of(name: str, data: bytes) -> Entry:
    """The entry of an object with this content."""
    return Entry(name, len(data), _digest(data))


def is_whole(entry: Entry, data: bytes) -> bool:
    """Whether this is the content that the entry was made of."""
    return entry_of(entry.name, data) == entry


def encode_index(index: Index) -> bytes:
    """The index as bytes: a line of JSON, and a line with its digest."""
    body = msgspec.json.encode(index)
    return b"%s\n%s\n" % (body, _digest(body).encode())


def decode_index(backup: str, data: bytes) -> Index:
    """The index of this backup. Raises `Damaged`, also for one of another version of styx."""
    body, _, digest = data.rstrip(b"\n").rpartition(b"\n")
    if _digest(body).encode() != digest:
        raise Damaged(f"the index of backup {backup} is damaged: its checksum does not match. Take another backup")
    try:
        index = msgspec.json.decode(body, type=Index)
    except msgspec.DecodeError as error:
        raise Damaged(f"the index of backup {backup} is of another version of styx ({error})") from None
    if index.format != FORMAT:
        raise Damaged(
            f"backup {backup} has format {index.format}, and this version of styx reads format {FORMAT}: "
            f"restore it with styx {index.styx}"
        )
    return index


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
