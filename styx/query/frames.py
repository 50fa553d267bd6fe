"""Frames on pipes between a command and its query process: a letter, the length in 8 bytes, and that many bytes."""

from __future__ import annotations

import os
import select
import time
from typing import IO, Final

KIND_BYTES: Final = 1
_LENGTH_BYTES: Final = 8
_READ_BYTES: Final = 2**20

HEADER: Final = b"H"
"""To the process: the query and the tables, as JSON."""
NEEDS: Final = b"N"
"""From the process: what the query reads, `Needs` as JSON."""
ROWS: Final = b"R"
"""Rows, in both directions: an Arrow IPC stream with a schema and at most one batch."""
SHARED: Final = b"S"
"""To the process: how many descriptors of `SharedRows` come on its socket, as text."""
END: Final = b"E"
"""The end of a table's rows, or of the result's."""
BEGINS: Final = b"B"
"""From the process: the query begins now."""
FAILED: Final = b"F"
"""From the process: why there is no result, as text."""


class Closed(Exception):
    """The other process has ended."""


class OutOfTime(Exception):
    """No frame came in time."""


def write_frame(file: IO[bytes], kind: bytes, data: bytes = b"") -> None:
    """Writes a frame, and hands it on at once."""
    file.write(kind + len(data).to_bytes(_LENGTH_BYTES, "big"))
    file.write(data)
    file.flush()


class FrameReader:
    """Reads frames of a descriptor. While `seconds_left` is a number, waiting for the other process uses it up."""

    def __init__(self, descriptor: int, bytes_max: int) -> None:
        self._descriptor = descriptor
        self._bytes_max = bytes_max
        self.seconds_left: float | None = None

    def read(self) -> tuple[bytes, bytes]:
        """The next frame's kind and content; raises `Closed`, `OutOfTime`, and `ValueError` for one that is too
        large.
        """
        head = self._exactly(KIND_BYTES + _LENGTH_BYTES)
        length = int.from_bytes(head[KIND_BYTES:], "big")
        if length > self._bytes_max:
            raise ValueError(f"{length} bytes came at once; the limit is {self._bytes_max}")
        return head[:KIND_BYTES], self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        parts, missing = [], length
        while missing:
            self._wait()
            part = os.read(self._descriptor, min(missing, _READ_BYTES))
            if not part:
                raise Closed
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _wait(self) -> None:
        if self.seconds_left is None:
            return
        began = time.monotonic()
        waiting = select.poll()  # select takes no descriptor above 1,023
        waiting.register(self._descriptor, select.POLLIN)
        ready = waiting.poll(max(0.0, self.seconds_left) * 1_000)
        self.seconds_left -= time.monotonic() - began
        if not ready:
            raise OutOfTime
