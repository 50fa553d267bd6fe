"""Files of records that a capture writes and a judgement reads from their beginning, one record after the other.

So neither has more of a log in memory than a buffer. A record is its length in four bytes, big-endian, and its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from styx.audit.verdict import CannotJudge

_LENGTH_BYTES: Final = 4


class Budget:
    """The bytes that a capture may still write; `spend` raises `CannotJudge` beyond them."""

    def __init__(self, bytes_max: int) -> None:
        self._max = bytes_max
        self._left = bytes_max

    def spend(self, size: int) -> None:
        """Takes `size` bytes."""
        self._left -= size
        if self._left < 0:
            raise CannotJudge(
                f"snapshots and log between them have more than {self._max} bytes: give a larger --scratch-bytes, or "
                "take snapshots more often"
            )


class RecordWriter:
    """Appends records to the files of a directory, by name; to be used as a context manager."""

    def __init__(self, directory: Path, budget: Budget) -> None:
        self._directory = directory
        self._budget = budget
        self._waiting: dict[str, list[bytes]] = {}
        self._bytes: dict[str, int] = {}

    def append(self, name: str, record: bytes) -> None:
        """Appends a record to the file `name`, which it makes if it is not there."""
        size = len(record) + _LENGTH_BYTES
        self._budget.spend(size)
        waiting = self._waiting.setdefault(name, [])
        waiting += (len(record).to_bytes(_LENGTH_BYTES, "big"), record)
        self._bytes[name] = self._bytes.get(name, 0) + size
        if self._bytes[name] >= BUFFER_BYTES:
            self._write(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in list(self._waiting):
            self._write(name)

    def _write(self, name: str) -> None:
        # Opened each time: a deployment may have more partitions than a process may have files open.
        with (self._directory / name).open("ab") as file:
            file.write(b"".join(self._waiting.pop(name)))
        self._bytes[name] = 0


BUFFER_BYTES: Final = 64 * 1024
"""What is read or written at once of each file."""


def read_records(file: Path) -> Iterator[bytes]:
    """The records of a file in their order; none if there is no such file."""
    if not file.exists():
        return
    position, rest = 0, b""
    while True:
        with file.open("rb") as opened:
            opened.seek(position)
            piece = opened.read(BUFFER_BYTES)
        position += len(piece)
        data, at = rest + piece, 0
        while len(data) - at >= _LENGTH_BYTES:
            end = at + _LENGTH_BYTES + int.from_bytes(data[at : at + _LENGTH_BYTES], "big")
            if end > len(data):
                break
            yield data[at + _LENGTH_BYTES : end]
            at = end
        rest = data[at:]
        if not piece:
            assert not rest, f"{file} ends amid a record"
            return
