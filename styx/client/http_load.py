"""Bulk loads through a gateway: each chunk is one message of encoded pairs, which the gateway sorts by slot.

Values travel as msgpack, so that JSON changes none of them. A chunk without an answer is sent again under the same
idempotency key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from styx.client.base import OperatorLike, check_key, operator_name
from styx.client.load import Chunk, LoadTarget, split_pair, unfit
from styx.errors import BadArguments, LoadFailed, NotSent, OutcomeUnknown, UnsupportedValue
from styx.model.bulk_load import encode_pair, encode_pairs
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.values.codec import encode_strict, shown

ATTEMPTS_MAX: Final = 8
"""How often a chunk is sent before the load fails; the waits between add up to seven seconds."""
MESSAGE_PAIRS_MAX: Final = 4_000
"""Pairs of one message: the gateway makes several chunks of it, one for each slot at least."""

REQUEST_TIMEOUT_STATUS: Final = 408
"""What a proxy says that waited for a server in vain, or for the rest of a request."""

Post = Callable[[str, dict[str, str], bytes, float], Awaitable[tuple[int, bytes, str]]]
"""(path, headers, body, timeout) to (status, body, request id)."""


class _Error(msgspec.Struct):
    code: str
    message: str
    type: str = ""


class _Answer(msgspec.Struct):
    loaded: int = 0
    error: _Error | None = None
    pair: int | None = None


_decode = msgspec.json.Decoder(_Answer).decode


def no_reply_in(status: int, what: str, request_id: str = "") -> NotSent | OutcomeUnknown:
    """The error for an answer that no gateway gives to a request: what refuses or redirects it has not run it."""
    why = f"status {status} without a reply: {what}; is there a gateway?"
    refused = 300 <= status < 500 and status != REQUEST_TIMEOUT_STATUS
    return NotSent(why) if refused else OutcomeUnknown(why, request_id)


class HttpLoadTarget(LoadTarget):
    """All pairs are of one group: which slot a key belongs to is the gateway's knowledge."""

    pairs_max = MESSAGE_PAIRS_MAX
    attempts_max = ATTEMPTS_MAX

    def __init__(self, post: Post, operator: OperatorLike, replace: bool, timeout: float) -> None:
        self.operator = operator_name(operator)
        self._post = post
        self._declared = operator
        self._encode: Callable[[Any], bytes] = (
            operator.encode_state if isinstance(operator, Operator) else encode_strict
        )
        self._timeout = timeout
        try:
            self._path = f"/v1/{quote(self.operator, safe='')}?replace={'true' if replace else 'false'}"
        except UnicodeEncodeError as error:
            raise BadArguments(f"the operator's name is not valid Unicode: {error}") from None

    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        key, value = split_pair(pair)
        checked = check_key(self._declared, key)
        try:
            return 0, checked, encode_pair(checked, self._encode(value))
        except UnsupportedValue as error:
            raise unfit(self.operator, checked, error) from None
        except (UnicodeEncodeError, OverflowError) as error:
            raise BadArguments(f"the key {shown(key)} cannot be sent: {error}") from None

    async def send(self, chunk: Chunk) -> None:
        headers = {"Content-Type": "application/msgpack", "Idempotency-Key": chunk.name}
        status, data, _ = await self._post(self._path, headers, encode_pairs(chunk.pairs), self._timeout)
        try:
            answer = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise no_reply_in(status, shown(data)) from None
        error = answer.error
        if error is not None:
            raise LoadFailed(error.code, error.type or error.code, error.message, answer.loaded, index=answer.pair)
