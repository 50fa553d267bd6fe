"""Messages between the serving process and the checking process: a length, then msgpack. Data only."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

import msgspec

from styx.cli.check.source_files import Stamps
from styx.model.execution import ErrorTriple
from styx.model.limits import Limits

LENGTH_BYTES: Final = 4
CHANGED: Final = "the app's files have changed since it was imported"


class Begin(msgspec.Struct, tag=1, array_like=True):
    """Import the app that `target` names; what follows is of a deployment with these limits and slots.

    `files` are those of the app that the engine runs, with their times and sizes: with others it is another app.
    """

    target: str
    n_slots: int
    limits: Limits
    files: Stamps


class Written(msgspec.Struct, array_like=True):
    """An entity's encoded state, None if it has none."""

    operator: str
    key: Any
    value: bytes | None


class State(msgspec.Struct, tag=2, array_like=True):
    """All state, as it is between two epochs."""

    entities: list[Written]


class Ended(msgspec.Struct, array_like=True):
    """A transaction that has ended: its request as it stands in the log, and its reply's result or error.

    `externals` are the encoded outcomes of its outside calls by key.
    """

    tid: int
    timestamp_us: int
    payload: bytes
    result: bytes | None
    error: ErrorTriple | None
    externals: dict[bytes, bytes] | None


class Epoch(msgspec.Struct, tag=3, array_like=True):
    """What ended in an epoch, in serial order, and the state afterwards of each entity that was written."""

    epoch: int
    ended: list[Ended]
    written: list[Written]


class Difference(msgspec.Struct, tag=4, array_like=True):
    """A transaction came to another end; the function of its request stands at `line` of `file`."""

    operator: str
    key: Any
    function: str
    tid: int
    epoch: int
    text: str
    file: str
    line: int


class Checked(msgspec.Struct, tag=5, array_like=True):
    """It has taken the last message. `problem` ends it: why it cannot go on."""

    problem: str = ""


ToChecker = Begin | State | Epoch
FromChecker = Difference | Checked

encode = msgspec.msgpack.Encoder().encode
to_checker = msgspec.msgpack.Decoder(ToChecker).decode
from_checker = msgspec.msgpack.Decoder(FromChecker).decode


def write(file: BinaryIO, data: bytes) -> None:
    """Writes one message; blocks."""
    file.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)
    file.flush()


def read(file: BinaryIO) -> bytes | None:
    """The next message, None at the end; blocks."""
    length = file.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        return None
    data = file.read(int.from_bytes(length, "big"))
    return data if len(data) == int.from_bytes(length, "big") else None
