"""`styx call`: one request through a gateway, its result on standard output."""

from __future__ import annotations

import sys
from typing import Annotated, Final

from cyclopts import Parameter

from styx.cli.gateway_options import (
    ApiKey,
    Authority,
    EntityKey,
    GatewayUrl,
    OperatorName,
    ReplyTimeout,
    check_timeout_option,
)
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT

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
    from styx.cli.call_outcome import call_outcome, unknown_outcome
    from styx.cli.gateway_request import GatewayRequest, NoReply, post
    from styx.cli.json_arguments import json_arguments
    from styx.cli.output import readable
    from styx.cli.run_directory import gateway_url

    check_timeout_option(timeout)
    url = gateway_url(url)
    # A key always, so that a request without a reply can be asked for again.
    same_key = idempotency_key or _new_key()
    request = GatewayRequest(operator, key, function, json_arguments(arguments), timeout, same_key, api_key, ca)
    try:
        outcome = call_outcome(post(url, request), url, same_key)
    except NoReply as error:
        outcome = unknown_outcome(str(error), same_key)
    if outcome.complaint:
        print(outcome.complaint, file=sys.stderr)
    if outcome.output:
        print(readable(outcome.output))
    return outcome.exit_code


def _new_key() -> str:
    from secrets import token_hex

    return token_hex(12)
