"""`styx call`: one request through a gateway, its result on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from styx.cli.common_options import (
    ApiKey,
    Authority,
    EntityKey,
    GatewayUrl,
    OperatorName,
    ReplyTimeout,
    check_timeout,
)
from styx.cli.exit_codes import usage_error
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, TIMEOUT_SECONDS_MAX
from styx.values.codec import shown

EXAMPLES: Final = """\
Examples:
  styx call account alice open 100
  styx call account alice transfer bob 30
  styx call cart ada add '{"product": "tea", "tags": ["green"]}'
  styx call order '[1,2]' status --url http://shop.internal:8080
  STYX_API_KEY=$(cat key) styx call account alice balance --url https://shop.example.com

Exit codes:
  0    committed; the result is on standard output
  1    aborted by the application ("aborted: Type: message"), no gateway, or
       no reply in time
  2    rejected before it ran: no such operator or function, or the arguments
       do not fit
"""


_OPENS_JSON = ("{", "[", '"')
_encode = msgspec.json.Encoder().encode


def call(
    operator: OperatorName,
    key: EntityKey,
    function: Annotated[str, Parameter(help="The function's name, such as transfer.")],
    /,
    *arguments: Annotated[str, Parameter(help="The function's arguments: JSON, or text as it stands.")],
    url: GatewayUrl = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    idempotency_key: Annotated[
        str | None,
        Parameter(help="The same key gives the first reply again and runs nothing.", env_var="STYX_IDEMPOTENCY_KEY"),
    ] = None,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> int:
    """Send one request and print its result as JSON.

    An argument that is JSON is taken as that (10, true, null, '{"name": "tea"}'),
    any other word as text (bob). A number as text needs both quotes: '"10"'.
    What begins with a dash and is no number goes after --.
    """
    from styx.cli.gateway_request import GatewayRequest, NoReply, call_outcome, post, unknown_outcome
    from styx.cli.run_directory import gateway_url

    check_timeout(timeout, TIMEOUT_SECONDS_MAX)
    url = gateway_url(url)
    # A key always, so that a request without a reply can be asked for again.
    same_key = idempotency_key or _new_key()
    request = GatewayRequest(operator, key, function, json_arguments(arguments), timeout, same_key, api_key, ca)
    try:
        outcome = call_outcome(post(url, request), url, same_key)
    except NoReply as error:
        outcome = unknown_outcome(str(error), same_key)
    return outcome.told()


def _new_key() -> str:
    from secrets import token_hex

    return token_hex(12)


def json_arguments(words: Sequence[str]) -> bytes:
    """The JSON array of the words: a word that is JSON as such, any other word as text. The server decides whether an
    argument fits the function.

    Raises `CommandFailed` for a word that begins like JSON and is not: half an object is a slip, never meant as text.
    """
    return b"[" + b",".join(_json(number, word) for number, word in enumerate(words, 1)) + b"]"


def _json(number: int, word: str) -> bytes:
    try:
        data = word.encode()
    except UnicodeEncodeError:
        raise usage_error(f"argument {number} is not valid Unicode: {shown(word)}") from None
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        if word.lstrip().startswith(_OPENS_JSON):
            raise usage_error(
                f"argument {number} begins like JSON and is not: {shown(word)}: {error}\n"
                'Put it in single quotes, so that the shell leaves its double quotes alone: \'{"name": "tea"}\''
            ) from None
        return _encode(word)
    return data
