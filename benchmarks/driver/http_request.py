"""A workload's request as HTTP has it, and what an HTTP answer says of it: for load generators that are not the driver.

Pure; sends nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from benchmarks.driver.workload import Planned


class Verdict(NamedTuple):
    """What a request counts as, under `name`; `failure` says why it is none of a success's, empty if it is one."""

    name: str
    failure: str


def path_of(planned: Planned) -> str:
    """Below a gateway's address: an int key in its decimal form, a tuple as a JSON array."""
    key = planned.key if isinstance(planned.key, str) else msgspec.json.encode(planned.key).decode()
    return "/v1/" + "/".join(quote(part, safe="") for part in (planned.operator.name, key, planned.function))


def body_of(planned: Planned) -> str:
    """Its arguments, positional."""
    return msgspec.json.encode(planned.arguments).decode()


def verdict_of(kind: str, status: int, body: bytes, expected: Collection[str]) -> Verdict:
    """Of an answer; `expected` are the types of the errors with which the workload's functions abort by its will."""
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


def _told(code: Any, what: Any) -> str:
    return f"{code} by {what}" if what else f"{code}"
