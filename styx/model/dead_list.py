"""Dead calls as a client gets them: calls for later that were given up after their last attempt, in pages.

A page is put together of the partitions' own pages, one transaction each, partition after partition; within one, those
that were given up first come first. So a page is not one moment of the whole deployment. Nothing here sends anything:
`ask` does.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from styx.errors import BadArguments
from styx.model.dead_access import PAGE_MAX
from styx.model.partition_function import PARTITIONS_SUFFIX
from styx.values.codec import shown

DEAD_CALLS_DEFAULT: Final = 100
DEAD_CALLS_PAGE_MAX: Final = 1_000
"""Dead calls that one page can have."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_encode = msgspec.msgpack.Encoder().encode
_Part = str | int
_decode_id = msgspec.msgpack.Decoder(tuple[_Part | list[_Part], str]).decode
_decode_place = msgspec.msgpack.Decoder(tuple[int, list[_Part] | None]).decode

Ask = Callable[[str, Any, tuple[Any, ...]], Awaitable[Any]]
"""(operator, key, arguments) to the result of `DEAD_FUNCTION`; raises what a call raises."""


class DeadCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was given for later and given up.

    `id` names it; `giver` is the key of the entity that gave it. `operator`, `function`, `key` and `arguments` are what
    it calls. `arguments` is None if they have more than 8 KiB; `arguments_bytes` is their size. `attempts` were made;
    `error_type` and `error_message` are of the last one. Times are in UTC.
    """

    id: str
    giver: Any
    operator: str
    function: str
    key: Any
    arguments: Any
    arguments_bytes: int
    given_at: datetime
    died_at: datetime
    attempts: int
    error_type: str
    error_message: str


class DeadCallsPage(msgspec.Struct, frozen=True, kw_only=True):
    """`next` is what to give as `after` for the next page, None if there is none."""

    calls: list[DeadCall]
    next: str | None = None


async def dead_page(ask: Ask, operator: str, key: Any, after: str | None, first: int) -> DeadCallsPage:
    """A page of an operator's dead calls, or of those that the entity `key` gave; raises `BadArguments`."""
    if type(first) is not int or not 0 < first <= DEAD_CALLS_PAGE_MAX:
        raise BadArguments(f"a page has 1 to {DEAD_CALLS_PAGE_MAX} dead calls: got first={shown(first)}")
    partition, behind = (0, None) if after is None else _place(after)
    calls: list[DeadCall] = []
    partitions = partition + 1
    while len(calls) < first and partition < partitions:
        asked = (behind, min(PAGE_MAX, first - len(calls)))
        if key is None:
            found, behind, partitions = await ask(operator + PARTITIONS_SUFFIX, partition, asked)
        else:
            found, behind, partitions = await ask(operator, key, asked)
        calls += [_of(*each) for each in found]
        if behind is None:
            partition += 1
    more = partition < partitions
    return DeadCallsPage(calls=calls, next=_text([partition, behind]) if more else None)


def page_of(result: Any) -> DeadCallsPage:
    """The page that a gateway's JSON has; raises `msgspec.ValidationError`."""
    page = msgspec.convert(result, DeadCallsPage)
    calls = [msgspec.structs.replace(call, giver=_key(call.giver), key=_key(call.key)) for call in page.calls]
    return DeadCallsPage(calls=calls, next=page.next)


def _key(plain: Any) -> Any:
    return tuple(plain) if isinstance(plain, list) else plain


def id_of(giver: Any, its_id: str) -> str:
    """The text that names a dead call."""
    return _text([giver, its_id])


def parts_of(call_id: Any) -> tuple[Any, str]:
    """(the giving entity's key, its own part) of what `id_of` gave; raises `BadArguments`."""
    try:
        giver, its_id = _decode_id(_bytes(call_id))
    except (AttributeError, ValueError, msgspec.MsgspecError):
        raise BadArguments(f"{shown(call_id)} is no id of a dead call: a list of them has the ids") from None
    return _key(giver), its_id


def _place(after: Any) -> tuple[int, list[_Part] | None]:
    try:
        partition, behind = _decode_place(_bytes(after))
    except (AttributeError, ValueError, msgspec.MsgspecError):
        partition, behind = -1, None
    if partition < 0 or behind == []:
        raise BadArguments(f"{shown(after)} is no place in a list of dead calls: take `next` of the page before")
    return partition, behind


def _of(
    giver: Any,
    its_id: str,
    operator: str,
    function: str,
    key: Any,
    arguments: Any,
    arguments_bytes: int,
    given_us: int,
    died_us: int,
    attempts: int,
    error_type: str,
    error_message: str,
) -> DeadCall:
    return DeadCall(
        id=id_of(giver, its_id),
        giver=_key(giver),
        operator=operator,
        function=function,
        key=_key(key),
        arguments=arguments,
        arguments_bytes=arguments_bytes,
        given_at=_EPOCH + timedelta(microseconds=given_us),
        died_at=_EPOCH + timedelta(microseconds=died_us),
        attempts=attempts,
        error_type=error_type,
        error_message=error_message,
    )


def _text(value: Any) -> str:
    return urlsafe_b64encode(_encode(value)).decode().rstrip("=")


def _bytes(text: Any) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
