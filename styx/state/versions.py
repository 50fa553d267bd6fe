"""Versions: what commits have overwritten, kept by epoch for a short while, so that the state at the end of an earlier
epoch can still be read.

An image is a key's state before the first write of an epoch. The state of a key at the end of epoch `v` is the image of
the first epoch after `v` that wrote it, or else what the table has. Images share the bytes of the state that they were.
Nobody waits for a reader: what is too old, or too much, is dropped. Keeping begins with the first reader, because a
worker that nobody reads pays one comparison a write. Versions are never stored, and end with their generation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

Images = dict[Any, bytes | None]
"""States before an epoch's first write, by key; None: there was none."""

IMAGE_BYTES: Final = 120
"""What an image counts beside the bytes of the state: its place in a dictionary, and mostly a key that nothing else
holds.
"""


class EpochVersions:
    """The images that one epoch has left, in any number of tables. `n_bytes` is what they count."""

    __slots__ = ("epoch", "n_bytes", "n_images", "tables")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.n_bytes = 0
        self.n_images = 0
        self.tables: list[TableVersions] = []


class Versions:
    """Of all tables of one worker, in one generation. At most `epochs_max` epochs with writes are kept, and `bytes_max`
    bytes; what the newest epoch has left is kept in any case.

    `oldest` is the first epoch whose end can be read, None as long as nothing is kept. `dropped` counts the epochs that
    were dropped for their bytes.
    """

    __slots__ = ("_bytes_max", "_epochs_max", "_ring", "dropped", "oldest")

    def __init__(self, epochs_max: int, bytes_max: int) -> None:
        self._epochs_max = epochs_max
        self._bytes_max = bytes_max
        self._ring: deque[EpochVersions] = deque()
        self.oldest: int | None = None
        self.dropped = 0

    def begin(self, oldest: int) -> None:
        """Keeping begins: no write behind the end of epoch `oldest` has been committed."""
        assert self.oldest is None, "versions are kept already"
        self.oldest = oldest

    @property
    def epochs(self) -> int:
        """How many epochs have left images that are kept."""
        return len(self._ring)

    @property
    def n_bytes(self) -> int:
        """What all images count."""
        return sum([kept.n_bytes for kept in self._ring])

    @property
    def n_images(self) -> int:
        """How many images are kept."""
        return sum([kept.n_images for kept in self._ring])

    def opened(self, epoch: int) -> EpochVersions:
        """The images of the epoch that commits now; makes room for them when the first one is due."""
        ring = self._ring
        if ring and ring[-1].epoch == epoch:
            return ring[-1]
        while len(ring) >= self._epochs_max:
            self._drop()
        n_bytes = self.n_bytes
        while n_bytes > self._bytes_max:
            n_bytes -= ring[0].n_bytes
            self.dropped += 1
            self._drop()
        opened = EpochVersions(epoch)
        ring.append(opened)
        return opened

    def _drop(self) -> None:
        """Drops the oldest images: nothing before the end of their epoch can be read from here on."""
        kept = self._ring.popleft()
        self.oldest = kept.epoch
        for table in kept.tables:
            table.forget(kept.epoch)


class TableVersions:
    """The images of one table."""

    __slots__ = ("_kept", "_open", "_open_images", "_versions")

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._kept: deque[tuple[int, Images]] = deque()
        self._open: EpochVersions | None = None
        self._open_images: Images = {}

    def keep(self, epoch: int, key: Any, before: bytes | None) -> None:
        """A state is about to be written in `epoch`; `before` is what it is so far."""
        opened = self._open
        if opened is None or opened.epoch != epoch:
            opened = self._begin(epoch)
        images = self._open_images
        if key not in images:
            images[key] = before
            opened.n_images += 1
            opened.n_bytes += IMAGE_BYTES if before is None else IMAGE_BYTES + len(before)

    def keep_all(self, epoch: int, keys: Iterable[Any], entries: Mapping[Any, bytes]) -> None:
        """As `keep`, for states that are about to be written together; `entries` has what they are so far."""
        opened = self._open
        if opened is None or opened.epoch != epoch:
            opened = self._begin(epoch)
        images, n_before = self._open_images, len(self._open_images)
        if n_before:
            keys = [key for key in keys if key not in images]
        found = {key: entries.get(key) for key in keys}
        images.update(found)
        opened.n_images += len(images) - n_before
        opened.n_bytes += IMAGE_BYTES * len(found) + sum(map(len, filter(None, found.values())))

    def _begin(self, epoch: int) -> EpochVersions:
        opened = self._open = self._versions.opened(epoch)
        opened.tables.append(self)
        self._open_images = {}
        self._kept.append((epoch, self._open_images))
        return opened

    def forget(self, epoch: int) -> None:
        """Drops the images of `epoch`, the oldest ones."""
        kept, _ = self._kept.popleft()
        assert kept == epoch, "versions are dropped out of order"

    def value_at(self, epoch: int, key: Any, newest: Mapping[Any, bytes]) -> bytes | None:
        """A state at the end of `epoch`; `newest` is what the table has now."""
        for written, images in self._kept:
            if written > epoch and key in images:
                return images[key]
        return newest.get(key)

    def behind(self, epoch: int) -> list[Images]:
        """The images of all epochs after `epoch`, the newest first: of a key that comes twice, the later one counts."""
        found = [images for written, images in self._kept if written > epoch]
        found.reverse()
        return found
