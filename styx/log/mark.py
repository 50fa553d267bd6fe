"""The durability mark: a small file beside the log with the highest acknowledged LSN.

SQLite ends its write-ahead log silently at the first damaged frame, so committed records can vanish. The mark is
written after each commit, without a sync. It may be behind the log, but never ahead of it: a log that ends below its
mark has lost records. The log can be read without the mark.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Final

from styx.process.fsync import fsync_file

_SLOT: Final = struct.Struct("<QI")
# Far enough apart for one torn or lost sector to spare the other slot.
_SLOT_POSITIONS: Final = (0, 4096)


class Mark:
    """The mark at `path`, created if it is missing; `lsn` is the highest acknowledged LSN, 0 for none.

    Raises `OSError`. A slot with a wrong checksum, torn or zeroed by a power cut, counts as missing.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        slots = [self._read(position) for position in _SLOT_POSITIONS]
        self.lsn = max(slots)
        # The older slot is written next, so that a torn write spares the newer one.
        self._next_slot = slots.index(min(slots))

    def advance(self, lsn: int) -> None:
        """Marks all records up to `lsn` as durable. Raises `OSError`."""
        data = lsn.to_bytes(8, "little")
        os.pwrite(self._descriptor, data + zlib.crc32(data).to_bytes(4, "little"), _SLOT_POSITIONS[self._next_slot])
        self._next_slot = 1 - self._next_slot
        self.lsn = lsn

    def close(self, *, sync: bool) -> None:
        """Closes the file; with `sync`, the mark then survives a power cut."""
        try:
            if sync:
                fsync_file(self._descriptor)
        finally:
            os.close(self._descriptor)

    def _read(self, position: int) -> int:
        data = os.pread(self._descriptor, _SLOT.size, position)
        if len(data) < _SLOT.size:
            return 0
        lsn: int
        lsn, checksum = _SLOT.unpack(data)
        return lsn if checksum == zlib.crc32(data[:8]) else 0
