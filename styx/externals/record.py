"""A record of the externals stream: which outside call was begun, and how it ended. Data only. Paper section 7.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec


class ExternalRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record of the stream: the intent to run a call, or (with the encoded `ExternalOutcome`) its end."""

    tid: int
    key: bytes
    outcome: bytes | None = None


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(ExternalRecord)


def encode_external(record: ExternalRecord) -> bytes:
    """The record for the externals stream."""
    return _encode(record)


def decode_external(data: bytes) -> ExternalRecord:
    """Raises `msgspec.DecodeError` for garbage."""
    return _decoder.decode(data)


class Journal(Protocol):
    """Where records go, and which outcomes are in it."""

    def outcome(self, key: bytes) -> bytes | None:
        """How the call ended, if that was logged."""

    def append(self, slot: int, record: ExternalRecord, durable: Callable[[], None]) -> None:
        """Appends to the partition of the root's slot; calls `durable` on the loop once it is."""
