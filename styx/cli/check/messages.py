"""Messages between the serving process and the checking process: a length, then msgpack."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

import msgspec

from styx.cli.source_files import Stamps
from styx.model.execution import ErrorTriple
from styx.model.limits import Limits

LENGTH_BYTES: Final = 4
CHANGED: Final = "the app's files have changed since it was imported"


class Begin(msgspec.Struct, tag=1, array_like=True):
    """Import the app at `target`; the messages that follow are of a deployment with these limits and slots.

    `files` are the stamps of the app's files that the engine runs: with others, the imported app is another one.
    """

    target: str
    n_slots: int
    limits: Limits
    files: Stamps


class Written(msgspec.Struct, array_like=True):
    """An entity and its encoded state, None if it has none."""

    operator: str
    key: Any
    value: bytes | None


class State(msgspec.Struct, tag=2, array_like=True):
    """The whole state between two epochs."""

    entities: list[Written]


class Ended(msgspec.Struct, array_like=True):
    """A transaction that has ended: its request as it stands in the log, and its reply's result or error.

    `externals` are the encoded outcomes of its external calls by key.
    """

    tid: int
    timestamp_us: int
    payload: bytes
    result: bytes | None
    error: ErrorTriple | None
    externals: dict[bytes, bytes] | None


class Epoch(msgspec.Struct, tag=3, array_like=True):
    """The transactions that ended in an epoch, in serial order, and the state after it of each written entity."""

    epoch: int
    ended: list[Ended]
    written: list[Written]


class Difference(msgspec.Struct, tag=4, array_like=True):
    """A transaction whose outcome differs; the function of its request stands at `line` of `file`."""

    operator: str
    key: Any
    function: str
    tid: int
    epoch: int
    text: str
    file: str
    line: int


class Checked(msgspec.Struct, tag=5, array_like=True):
    """The answer to a message: it was checked. `problem` says why the process cannot go on, and ends it."""

    problem: str = ""


ToChecker = Begin | State | Epoch
FromChecker = Difference | Checked

encode = msgspec.msgpack.Encoder().encode
to_checker = msgspec.msgpack.Decoder(ToChecker).decode
from_checker = msgspec.msgpack.Decoder(FromChecker).decode


def write(file: BinaryIO, *messages: bytes) -> None:
    """Writes the messages at once; blocks."""
    file.write(b"".join([len(data).to_bytes(LENGTH_BYTES, "big") + data for data in messages]))
    file.flush()


def read(file: BinaryIO) -> bytes | None:
    """The next message, None at the end; blocks."""
    length = file.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        return None
    data = file.read(int.from_bytes(length, "big"))
    return data if len(data) == int.from_bytes(length, "big") else None
