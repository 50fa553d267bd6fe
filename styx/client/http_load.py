"""A bulk load through a gateway, and the error for an answer that no gateway has given.

A bulk load's chunk is one message of encoded pairs, which the gateway sorts by slot. Its values travel as msgpack, so
that JSON changes none of them. A chunk without an answer is sent again under the same idempotency key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from styx.client.base import OperatorLike, check_key
from styx.client.load import Chunk, LoadTarget, split_pair
from styx.client.loaded import RowsOf, what_is_loaded
from styx.errors import BadArguments, LoadFailed, NotSent, OutcomeUnknown
from styx.model.bulk_load import encode_pair, encode_pairs
from styx.model.partitioning import Key
from styx.values.codec import encode_strict, shown

ATTEMPTS_MAX: Final = 8
"""How often a chunk is sent before the load fails; the waits between add up to seven seconds."""
MESSAGE_PAIRS_MAX: Final = 4_000
"""Pairs of one message: the gateway makes several chunks of it, one for each slot at least."""

REQUEST_TIMEOUT_STATUS: Final = 408
"""The status of a proxy that waited in vain for a server, or for the rest of a request."""

Post = Callable[[str, dict[str, str], bytes, float], Awaitable[tuple[int, bytes, str]]]
"""(path, headers, body, timeout) to (status, body, request id)."""


class ErrorBody(msgspec.Struct):
    """What an answer says of an error."""

    code: str
    message: str
    type: str = ""


class _LoadBody(msgspec.Struct):
    loaded: int = 0
    error: ErrorBody | None = None
    pair: int | None = None


_decode_load = msgspec.json.Decoder(_LoadBody).decode


class HttpLoadTarget(LoadTarget):
    """All pairs are of one group: which slot a key belongs to is the gateway's knowledge."""

    pairs_max = MESSAGE_PAIRS_MAX
    attempts_max = ATTEMPTS_MAX

    def __init__(self, post: Post, operator: OperatorLike | RowsOf, replace: bool, timeout: float) -> None:
        loaded = self._loaded = what_is_loaded(operator, None, encode_strict)
        self.operator = loaded.name
        self._post = post
        self._timeout = timeout
        try:
            rows = f"rows={quote(loaded.table, safe='')}&" if loaded.table else ""
            self._path = f"/v1/{quote(loaded.operator, safe='')}?{rows}replace={'true' if replace else 'false'}"
        except UnicodeEncodeError as error:
            raise BadArguments(f"the operator's name is not valid Unicode: {error}") from None

    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        key, value = split_pair(pair)
        loaded = self._loaded
        checked = check_key(loaded.declared or loaded.operator, key)
        try:
            return 0, checked, encode_pair(checked, loaded.encoded(checked, value))
        except (UnicodeEncodeError, OverflowError) as error:
            raise BadArguments(f"the key {shown(key)} cannot be sent: {error}") from None

    async def send(self, chunk: Chunk) -> None:
        headers = {"Content-Type": "application/msgpack", "Idempotency-Key": chunk.name}
        status, data, _ = await self._post(self._path, headers, encode_pairs(chunk.pairs), self._timeout)
        try:
            answer = _decode_load(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise no_reply_in(status, shown(data)) from None
        error = answer.error
        if error is not None:
            raise LoadFailed(error.code, error.type or error.code, error.message, answer.loaded, index=answer.pair)


def no_reply_in(status: int, what: str, request_id: str = "") -> NotSent | OutcomeUnknown:
    """The error for an answer that no gateway gives to a request; a server that refuses or redirects has not run it."""
    why = f"status {status} without a reply: {what}; is there a gateway?"
    refused = 300 <= status < 500 and status != REQUEST_TIMEOUT_STATUS
    return NotSent(why) if refused else OutcomeUnknown(why, request_id)
