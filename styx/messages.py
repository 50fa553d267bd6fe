"""Requests, replies and events: what clients send and get, as it stands in the log and as Python sees it.

msgpack arrays only; nothing here is ever unpickled. Calls between workers are in `styx.protocol.frames`.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec

from styx.errors import NotSent, RequestRejected, SnapshotTooOld, TransactionAborted
from styx.model.limits import REQUEST_ID_CHARS_MAX
from styx.values.codec import decode_plain

REJECTION_CODES = frozenset(
    {
        "unknown_operator",
        "unknown_function",
        "bad_arguments",
        "bad_request",
        "too_large",
        "overloaded",
        "rate_limited",
        "unauthenticated",
        "forbidden",
        "forbidden_host",
        "forbidden_origin",
        "unsupported_media_type",
        "unavailable",
        "snapshot_too_old",
        "too_stale",
        "unknown_epoch",
        "not_read_only",
    }
)


class Request(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A request record of the requests stream.

    `params` is the msgpack of an array (positional) or a map (keyword) of arguments; `idempotency_key` is empty
    for none. `reply_to` is the partition of the replies stream that the requester listens on, where it can choose.
    """

    request_id: Annotated[str, msgspec.Meta(max_length=REQUEST_ID_CHARS_MAX)]
    operator: str
    key: str | int | list[str | int]
    function: str
    params: bytes
    idempotency_key: str = ""
    reply_to: int = 0


Entity = tuple[str, bytes]
"""(operator, encoded key)."""


class RequestHead(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What of a request says which function it is for; reading it costs as little for a large one."""

    request_id: str
    operator: str
    key: msgspec.Raw
    function: str


class ReplyRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A reply record of the replies stream.

    `sequence` is the TID the request itself was given and identifies the record; `tid` differs from it only for the
    repetition of an idempotent request, which repeats the first one's transaction. `error` is (code, type, message);
    `result` is msgpack. `reply_to` is as in the request.
    """

    request_id: str
    sequence: int
    tid: int
    epoch: int
    phase: int
    result: bytes
    error: tuple[str, str, str] | None = None
    reply_to: int = 0


class EventRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An event that a committed transaction has emitted, as it is handed on.

    `id` names the emission, and no other one in the deployment. The records of one slot are in serial order if they are
    in order of (epoch, phase, id). `operator` and `key` are the emitting entity's, `slot` is the key's; with `key=`
    given to `ctx.emit`, the key is that one. `time_us` is what `ctx.now()` was, in microseconds since 1970. `payload`
    is the value's msgpack, as `Event.decode` reads it.
    """

    id: str
    event: str
    version: int
    epoch: int
    phase: int
    tid: int
    operator: str
    key: str | int | list[str | int]
    time_us: int
    payload: bytes
    slot: int

    @property
    def place(self) -> tuple[int, int, str]:
        """Its place in the serial order of its slot's events."""
        return self.epoch, self.phase, self.id


class ReplyError(NamedTuple):
    """Why a request did not commit: `code` `aborted` if its function raised, else why it could not run."""

    type: str
    message: str
    code: str


class Reply(NamedTuple):
    """One request's outcome. `(epoch, phase, tid)` is its place in the public serial order."""

    result: Any
    error: ReplyError | None
    tid: int
    epoch: int
    phase: int
    request_id: str

    def unwrap(self) -> Any:
        """The result; raises `TransactionAborted`, or `RequestRejected`: of `unavailable` as `NotSent`, of
        `snapshot_too_old` as `SnapshotTooOld`.
        """
        error = self.error
        if error is None:
            return self.result
        if error.code == "unavailable":
            raise NotSent(error.message)
        if error.code == "snapshot_too_old":
            raise SnapshotTooOld(error.message)
        if error.code in REJECTION_CODES:
            raise RequestRejected(error.code, error.message)
        raise TransactionAborted(error.type, error.message)


_request_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(Request)
_head_decoder = msgspec.msgpack.Decoder(RequestHead)
_reply_decoder = msgspec.msgpack.Decoder(ReplyRecord)


def encode_request(request: Request) -> bytes:
    """The record to append to the requests stream."""
    return _request_encoder.encode(request)


def decode_request(data: bytes) -> Request:
    """Raises `msgspec.DecodeError` (or its `ValidationError`), `ValueError` or `RecursionError` for garbage."""
    return _request_decoder.decode(data)


def head_of(data: bytes) -> RequestHead | None:
    """Of an encoded request, whatever is wrong elsewhere in it; None for what is no request."""
    try:
        return _head_decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def requested_entity(data: bytes) -> Entity | None:
    """The entity that an encoded request is for; None for what is no request."""
    head = head_of(data)
    return None if head is None else (head.operator, bytes(head.key))


def encode_reply(record: ReplyRecord) -> bytes:
    """The record to append to the replies stream."""
    return _request_encoder.encode(record)


def decode_reply(data: bytes) -> ReplyRecord:
    """Raises `msgspec.DecodeError` for garbage."""
    return _reply_decoder.decode(data)


def reply_of(record: ReplyRecord) -> Reply:
    """The public form of a reply record."""
    error = None
    if record.error is not None:
        code, kind, message = record.error
        error = ReplyError(kind, message, code)
    result = decode_plain(record.result) if record.error is None and record.result else None
    return Reply(result, error, record.tid, record.epoch, record.phase, record.request_id)
