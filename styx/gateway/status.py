"""The HTTP answer to a request, from a reply or a refusal: the status, by one table, and the JSON body.

A result is written as JSON as far as that can be: bytes as base64, times as ISO 8601, other keys of a dict as strings;
NaN and the infinities have no JSON form and become null.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import LoadFailed, OutcomeUnknown, RequestRejected, SnapshotTooOld, StyxError
from styx.messages import ReplyRecord
from styx.model.entity_read import UNKNOWN_ENTITY, found_nothing
from styx.protocol.reads import READ_PHASE
from styx.values.codec import ext_hook

RETRY_AFTER_SECONDS: Final = 1
REJECTED: Final = RequestRejected.__name__
"""The `type` of the gateway's own refusals."""

STATUS_OF_CODE: Final = {
    "aborted": 409,
    "released": 410,
    "snapshot_too_old": 410,
    "not_read_only": 422,
    "query_limit": 422,
    "too_stale": 503,
    "unknown_epoch": 409,
    "unknown_operator": 404,
    "unknown_function": 404,
    UNKNOWN_ENTITY: 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "bad_request": 400,
    "bad_arguments": 422,
    "too_large": 413,
    "unsupported_media_type": 415,
    "unauthenticated": 401,
    "forbidden": 403,
    "forbidden_host": 403,
    "forbidden_origin": 403,
    "overloaded": 429,
    "rate_limited": 429,
    "unavailable": 503,
    "timeout": 504,
    "unknown": 504,
}
INTERNAL_STATUS: Final = 500
"""For a code the table does not know: a fault of the engine, never of the request."""

JSON: Final = (b"content-type", b"application/json")
NOT_CACHED: Final = (b"cache-control", b"no-store")
EPOCH: Final = b"styx-epoch"
"""The header with the epoch of a reply, or at whose end a read has read: a client's token."""
_RETRY_AFTER: Final = (b"retry-after", b"%d" % RETRY_AFTER_SECONDS)
_HEADERS: Final = {405: (JSON, (b"allow", b"POST")), 429: (JSON, _RETRY_AFTER), 503: (JSON, _RETRY_AFTER)}

_encode = msgspec.json.Encoder().encode
_result_decoder = msgspec.msgpack.Decoder(ext_hook=ext_hook)


class Answer(NamedTuple):
    """An HTTP status, a JSON body and the headers that go with them."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = (JSON,)


def headers_of(answer: Answer, request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of the answer to a request below `/v1/`, with its length and the request's id."""
    length = (b"content-length", b"%d" % len(answer.body))
    return [*answer.headers, length, (b"styx-request-id", request_id.encode("ascii"))]


def answer_of(record: ReplyRecord) -> Answer:
    """The answer that carries an engine's reply."""
    if record.error is not None:
        return failure(*record.error, record=record)
    place = b'"transaction":{"id":%d,"epoch":%d,"phase":%d}}' % (record.tid, record.epoch, record.phase)
    if record.phase == READ_PHASE:
        place = b'"read":{"epoch":%d}}' % record.epoch
    # Before the first epoch there is no token: clients send back what they get.
    headers = (JSON, (EPOCH, b"%d" % record.epoch)) if record.epoch >= 0 else (JSON,)
    try:
        return Answer(200, b'{"result":%b,%b' % (result_json(record.result), place), headers)
    except ResultNotJson as error:
        # The transaction has committed. A client that got a 5xx might repeat the request, and run it twice.
        why = _encode(f"the transaction committed, but its result cannot be written as JSON: {error}")
        return Answer(200, b'{"result":null,"result_error":%b,%b' % (why, place), headers)


def answer_of_read(record: ReplyRecord) -> Answer:
    """The answer that carries a read's reply."""
    error = record.error
    if error is not None and found_nothing(error[1]):
        return failure(UNKNOWN_ENTITY, error[1], error[2], record)
    return answer_of(record)


class MethodNotAllowed(RequestRejected):
    """A request came by another method than `methods`, which its path has."""

    def __init__(self, method: str, methods: tuple[str, ...]) -> None:
        message = f"requests are sent here with {' or '.join(methods)}, not {method}"
        if method in ("GET", "HEAD"):
            message += "; with GET only to a function that is registered with read_only=True"
        super().__init__("method_not_allowed", message)
        self.methods = methods


def refusal(error: StyxError, code: str) -> Answer:
    """The answer to a request that was not run because of `error`."""
    # As a read that comes too late is answered.
    other = isinstance(error, SnapshotTooOld) or not isinstance(error, RequestRejected)
    answer = failure(code, type(error).__name__ if other else REJECTED, getattr(error, "message", None) or str(error))
    if isinstance(error, MethodNotAllowed):
        return answer._replace(headers=(JSON, (b"allow", ", ".join(error.methods).encode())))
    return answer


def failure(code: str, kind: str, message: str, record: ReplyRecord | None = None) -> Answer:
    """An error answer; with the transaction's place if there was one."""
    content: dict[str, object] = {"error": {"code": code, "type": kind, "message": message}}
    if record is not None and record.tid:
        content["transaction"] = {"id": record.tid, "epoch": record.epoch, "phase": record.phase}
    elif record is not None and record.phase == READ_PHASE:
        content["read"] = {"epoch": record.epoch}
    status = STATUS_OF_CODE.get(code, INTERNAL_STATUS)
    headers = _HEADERS.get(status, (JSON,))
    if record is not None and record.epoch >= 0:
        headers = (*headers, (EPOCH, b"%d" % record.epoch))
    return Answer(status, _encode(content), headers)


def loaded(count: int) -> Answer:
    """The answer to a bulk load that has stored `count` pairs."""
    return Answer(200, b'{"loaded":%d}' % count)


def load_failed(error: LoadFailed) -> Answer:
    """The answer to a bulk load that ended before its end; `pair` counts from 0."""
    content: dict[str, object] = {
        "error": {"code": error.code, "type": error.type, "message": error.message},
        "loaded": error.loaded,
    }
    if error.index is not None:
        content["pair"] = error.index
    status = STATUS_OF_CODE.get(error.code, INTERNAL_STATUS)
    # Once a part is loaded, the answer must not say that the same body can simply be sent again.
    return Answer(status, _encode(content), (JSON,) if error.loaded else _HEADERS.get(status, (JSON,)))


def no_reply(why: TimeoutError | OutcomeUnknown, request_id: str) -> Answer:
    """The answer to a request that was taken and has no reply: it may have committed, or may still commit. It has no
    `Retry-After`.
    """
    code, kind = ("unknown", OutcomeUnknown) if isinstance(why, OutcomeUnknown) else ("timeout", TimeoutError)
    error = {"code": code, "type": kind.__name__, "message": str(why), "request_id": request_id}
    return Answer(STATUS_OF_CODE[code], _encode({"error": error, "request_id": request_id}))


class ResultNotJson(Exception):
    """The result cannot be written as JSON; its message says why."""


def result_json(data: bytes) -> bytes:
    """The JSON of an encoded result; raises `ResultNotJson`."""
    if not data:
        return b"null"
    try:
        value = _result_decoder.decode(data)
        try:
            return _encode(value)
        except TypeError:
            return _encode(with_text_keys(value))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ResultNotJson(str(error)) from None


def with_text_keys(value: Any) -> Any:
    """The value with texts as keys of its dicts, where JSON has no other ones."""
    if isinstance(value, dict):
        return {_key_text(key): with_text_keys(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_text_keys(item) for item in value]
    return value


def _key_text(key: Any) -> Any:
    """None, true, false and composite keys as their JSON text; the encoder takes all others."""
    if key is None or isinstance(key, bool | list | tuple):
        return _encode(key).decode()
    return key
