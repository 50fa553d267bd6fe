"""Rows of a table as Arrow in memory that several processes read: written once, sealed, and given by its descriptor.

On Linux nobody can change it then, the writer neither. Elsewhere it is a file without a name. Imports pyarrow, of the
extra `sql`: see `styx.query.extra`.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa

DESCRIPTORS_MAX: Final = 200
"""Descriptors that are given at once; the kernel's limit is 253."""


class SharedRows:
    """An Arrow IPC stream of `bytes` bytes and `rows` rows behind a descriptor, which is closed with the object.
    `unfit`: what `batches` says there of columns that nobody may read.
    """

    def __init__(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], unfit: Mapping[str, str] | None = None
    ) -> None:
        self.unfit: Mapping[str, str] = {} if unfit is None else unfit
        self.descriptor = _file()
        weakref.finalize(self, os.close, self.descriptor)
        self.rows = 0
        with open(self.descriptor, "wb", closefd=False) as file, pa.ipc.new_stream(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                self.rows += batch.num_rows
        self.bytes = os.fstat(self.descriptor).st_size
        _seal(self.descriptor)


def give(to: socket.socket, rows: Sequence[SharedRows]) -> None:
    """Gives another process the descriptors of up to `DESCRIPTORS_MAX`."""
    assert 0 < len(rows) <= DESCRIPTORS_MAX
    socket.send_fds(to, [b"\0"], [each.descriptor for each in rows])


def take(given: socket.socket, count: int) -> list[pa.RecordBatch]:
    """The batches behind the next `count` descriptors, which are read where they are. Raises `EOFError`."""
    _, descriptors, _, _ = socket.recv_fds(given, 1, count)
    if len(descriptors) < count:
        raise EOFError("the descriptors of a table did not come")
    batches: list[pa.RecordBatch] = []
    for descriptor in descriptors:
        memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        os.close(descriptor)
        batches += pa.ipc.open_stream(pa.py_buffer(memory))
    return batches


def _file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("styx-rows", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _seal(descriptor: int) -> None:
    if hasattr(fcntl, "F_ADD_SEALS"):
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
