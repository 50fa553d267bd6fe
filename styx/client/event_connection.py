"""One connection to a gateway that sends server-sent events: its blocks as they come, or why there are none.

Nothing here connects again, and nothing knows what the events mean: who reads decides both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final, NamedTuple

import aiohttp
import msgspec
import yarl

from styx.client.credential import Credential
from styx.errors import StyxError
from styx.values.event_lines import BLOCK_BYTES_MAX, ERROR, Block, BlockReader

SILENCE_SECONDS_MAX: Final = 60.0
"""A gateway that sends nothing for so long, not even a comment, counts as gone."""
CONNECT_SECONDS_MAX: Final = 10.0
BODY_BYTES_MAX: Final = 64 * 1024
"""Of an answer that is no stream."""
AGAIN: Final = ("unavailable", "overloaded", "rate_limited")
"""The codes of refusals after which another connection may be better."""

Sessions = Callable[[], aiohttp.ClientSession | None]
"""The client's session, None once it is closed."""


class Told(msgspec.Struct):
    """An error as a gateway tells it."""

    code: str = ""
    message: str = ""
    type: str = ""


class _Refusal(msgspec.Struct):
    error: Told


class Broken(Exception):
    """The connection ended before the stream did; the next one may be better."""


class Meanings(NamedTuple):
    """What to raise: for an error in the stream (`ended`), for an answer that is an error (`refused`) or something else
    (`no_stream`, of its status and its bytes), and once the client is `closed`.
    """

    ended: Callable[[Told], Exception]
    refused: Callable[[Told], Exception]
    no_stream: Callable[[int, bytes], Exception]
    closed: Callable[[str], StyxError]


async def connection(
    session_of: Sessions,
    url: yarl.URL,
    headers: Mapping[str, str],
    credential: Credential,
    meanings: Meanings,
    bytes_max: int = BLOCK_BYTES_MAX,
) -> AsyncGenerator[list[Block]]:
    """The blocks that come together, the first time none: then the stream has begun. A block has at most `bytes_max`.

    Raises what `meanings` say, `Broken`, and `ValueError` for what no gateway sends.
    """
    session = session_of()
    if session is None:
        raise meanings.closed("the client was closed")
    headers = {"Accept": "text/event-stream", **headers, **credential.headers()}
    times = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=SILENCE_SECONDS_MAX)
    try:
        async with session.get(url, headers=headers, timeout=times, allow_redirects=False) as response:
            if response.status != 200 or response.content_type != "text/event-stream":
                raise _refused(meanings, response.status, await response.content.read(BODY_BYTES_MAX))
            blocks = BlockReader(bytes_max)
            yield []
            async for data in response.content.iter_any():
                found = blocks.take(data)
                usual = [each for each in found if each.name != ERROR]
                if usual:
                    yield usual
                for each in found:
                    if each.name == ERROR:
                        raise meanings.ended(msgspec.json.decode(each.data or b"{}", type=_Refusal).error)
    except StyxError:
        raise
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        if session_of() is not session:
            raise meanings.closed("the client was closed") from None
        raise Broken(str(error) or type(error).__name__) from None


def _refused(meanings: Meanings, status: int, body: bytes) -> Exception:
    try:
        told = msgspec.json.decode(body, type=_Refusal).error
    except (msgspec.DecodeError, ValueError):
        return meanings.no_stream(status, body)
    return meanings.refused(told)
