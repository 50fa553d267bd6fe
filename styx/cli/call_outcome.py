"""The outcome of `styx call` for an answer: output, error text and exit code."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from styx.cli.exit_codes import ABSENT, FAILURE, SUCCESS, USAGE
from styx.cli.gateway_request import GatewayAnswer
from styx.values.codec import shown

_TYPED_WRONGLY: Final = frozenset(
    {"unknown_operator", "unknown_function", "not_found", "bad_arguments", "bad_request", "too_large"}
)
"""Codes of requests that never ran and never will as they are."""
_MAY_HAVE_RUN: Final = frozenset({"timeout", "unknown"})
_LATER: Final = frozenset({"overloaded", "unavailable"})
INTERNAL_STATUS: Final = 500


class CallOutcome(NamedTuple):
    """Text for standard output and for standard error, and the exit code."""

    output: str
    complaint: str
    exit_code: int


class _Error(msgspec.Struct):
    code: str
    message: str
    type: str = ""


class _Body(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw(b"null")
    result_error: str = ""
    error: _Error | None = None


def call_outcome(answer: GatewayAnswer, url: str, idempotency_key: str) -> CallOutcome:
    """The outcome of a request that was answered by the server at `url`."""
    body = _decoded(answer)
    if body is None:
        complaint = _no_reply(answer, url)
        if answer.status >= INTERNAL_STATUS:
            # Such as a proxy's that has lost its server: who knows what that had done.
            return unknown_outcome(complaint, idempotency_key)
        complaint += "\nCheck --url."
        return CallOutcome("", f"styx: {complaint}", FAILURE)
    error = body.error
    if error is not None:
        return _failed(error, idempotency_key)
    if body.result_error:
        return CallOutcome("", f"styx: {body.result_error}", FAILURE)
    return CallOutcome(bytes(body.result).decode(), "", SUCCESS)


def read_outcome(answer: GatewayAnswer, url: str) -> CallOutcome:
    """The outcome of the read of an entity."""
    body = _decoded(answer)
    if body is None:
        return CallOutcome("", f"styx: {_no_reply(answer, url)}\nCheck --url.", FAILURE)
    error = body.error
    if error is None:
        if body.result_error:
            return CallOutcome("", f"styx: {body.result_error}", FAILURE)
        return CallOutcome(bytes(body.result).decode(), "", SUCCESS)
    if error.code == "unknown_entity":
        return CallOutcome("", f"absent: {error.message}", ABSENT)
    if error.code in _MAY_HAVE_RUN:
        return CallOutcome("", f"styx: {error.message.partition(';')[0]}; nothing was changed, ask again", FAILURE)
    return _failed(error, "")


def _decoded(answer: GatewayAnswer) -> _Body | None:
    try:
        return msgspec.json.decode(answer.body, type=_Body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _no_reply(answer: GatewayAnswer, url: str) -> str:
    return f"status {answer.status} from {url} is no reply of a gateway: {shown(answer.body)}"


def unknown_outcome(why: str, idempotency_key: str) -> CallOutcome:
    """The outcome of a request that may have committed."""
    complaint = (
        f"styx: {why}; the request may have committed.\n"
        f"Ask again with --idempotency-key {idempotency_key}: that gives its reply and runs nothing twice."
    )
    return CallOutcome("", complaint, FAILURE)


def _failed(error: _Error, idempotency_key: str) -> CallOutcome:
    if error.code == "aborted":
        text = f"{error.type}: {error.message}" if error.message else error.type
        return CallOutcome("", f"aborted: {text}", FAILURE)
    if error.code in _MAY_HAVE_RUN:
        return unknown_outcome(error.message.partition(";")[0], idempotency_key)
    if error.code in _TYPED_WRONGLY:
        advice = f"\n{_ADVICE[error.code]}" if error.code in _ADVICE else ""
        return CallOutcome("", f"rejected: {error.message}{advice}", USAGE)
    later = "; try again later" if error.code in _LATER and "again" not in error.message else ""
    return CallOutcome("", f"{error.code}: {error.message}{later}", FAILURE)


_ADVICE: Final = {
    "bad_arguments": "Arguments are JSON, and other words are text; a number as text is '\"10\"'.",
    "not_found": "The path of --url may be too long: it ends before /v1.",
}
