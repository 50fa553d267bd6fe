"""A record of the externals stream: which outside call was begun, and how it ended. Paper section 7.5."""

from __future__ import annotations

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
