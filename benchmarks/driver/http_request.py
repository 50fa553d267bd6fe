"""A workload's request in HTTP, and the outcome of an HTTP answer, for load generators other than the driver. Pure."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from benchmarks.driver.workload import Planned
from styx.messages import Reply, ReplyError


class Verdict(NamedTuple):
    """A request's entry in the statistics, under `name`. `failure` is the reason of a failure, and empty for a
    success.
    """

    name: str
    failure: str


def path_of(planned: Planned) -> str:
    """The path at a gateway. An int key is in decimal form, a tuple is a JSON array."""
    key = planned.key if isinstance(planned.key, str) else msgspec.json.encode(planned.key).decode()
    return "/v1/" + "/".join(quote(part, safe="") for part in (planned.operator.name, key, planned.function))


def body_of(planned: Planned) -> str:
    """Its arguments, positional."""
    return msgspec.json.encode(planned.arguments).decode()


def verdict_of(kind: str, status: int, body: bytes, expected: Collection[str]) -> Verdict:
    """The entry of an answer. `expected` are the types of the errors by which the workload's functions abort on
    purpose.
    """
    if status == HTTPStatus.OK:
        return Verdict(kind, "")
    if status == 0:
        return Verdict(kind, "no answer")
    try:
        error = msgspec.json.decode(body)["error"]
        code, what, message = error["code"], error.get("type", ""), error["message"]
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return Verdict(kind, f"status {status} without a reply")
    if status == HTTPStatus.CONFLICT and what in expected:
        return Verdict(f"{kind} aborted", "")
    return Verdict(kind, f"{status} {_told(code, what)}: {message}")


class _Transaction(msgspec.Struct):
    id: int
    epoch: int
    phase: int


class _Error(msgspec.Struct):
    code: str
    message: str
    type: str = ""


class _Answer(msgspec.Struct):
    result: Any = None
    error: _Error | None = None
    transaction: _Transaction = msgspec.field(default_factory=lambda: _Transaction(0, 0, 0))


_answers: Final[msgspec.json.Decoder[_Answer]] = msgspec.json.Decoder(_Answer)
_WITHOUT_A_REPLY: Final = frozenset({"timeout", "unknown"})


def reply_of(status: int, body: bytes) -> Reply | None:
    """The reply in an answer; None if there is none, so that the request may have committed."""
    try:
        answer = _answers.decode(body)
    except msgspec.DecodeError:
        return None
    error, place = answer.error, answer.transaction
    if error is None:
        return Reply(answer.result, None, place.id, place.epoch, place.phase, "") if status == HTTPStatus.OK else None
    if error.code in _WITHOUT_A_REPLY:
        return None
    reason = ReplyError(error.type or error.code, error.message, error.code)
    return Reply(None, reason, place.id, place.epoch, place.phase, "")


def _told(code: Any, what: Any) -> str:
    return f"{code} by {what}" if what else f"{code}"
