"""`styx state`: what an entity's state is, asked through a gateway, on standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter

from styx.limits import TIMEOUT_SECONDS_DEFAULT, TIMEOUT_SECONDS_MAX

EXAMPLES: Final = """\
Examples:
  styx state get account alice
  styx state get order '[1,2]' --url http://shop.internal:8080

Exit codes:
  0    the state is on standard output
  1    no gateway, no reply in time, or the stored state does not fit its type
  2    rejected: no such operator, or a key of another type
  3    there is no such entity, and nothing is on standard output
"""


def state(sort_key: int) -> App:
    """`styx state` and what is below it; `sort_key` is its place in the list of commands."""
    commands = App(name="state", help="Look at an entity.", help_format="plaintext", sort_key=sort_key)
    commands.command(get, help_epilogue=EXAMPLES)
    return commands


def get(
    operator: Annotated[str, Parameter(help="The operator's name, such as account.")],
    key: Annotated[str, Parameter(help="The entity's key: alice, 42, or a JSON array for a composite key: '[1,2]'.")],
    /,
    *,
    url: Annotated[
        str | None,
        Parameter(help="The gateway; by default that of styx up here, or port 8080.", env_var="STYX_URL"),
    ] = None,
    timeout: Annotated[
        float, Parameter(help="Seconds to wait for the reply.", env_var="STYX_TIMEOUT")
    ] = TIMEOUT_SECONDS_DEFAULT,
    api_key: Annotated[
        str | None,
        Parameter(help="API key or token. Better in the environment: others here see options.", env_var="STYX_API_KEY"),
    ] = None,
    ca: Annotated[
        Path | None, Parameter(help="PEM file with the authority of an https gateway.", env_var="STYX_CA")
    ] = None,
) -> int:
    """Print one entity's state as JSON.

    It is read in a transaction of its own: all that was answered before is in it.
    A key that begins with a dash and is no number goes after --.
    """
    from styx.cli.call_outcome import read_outcome
    from styx.cli.exit_codes import FAILURE, usage_error
    from styx.cli.gateway_request import GatewayRead, NoReply, get_entity
    from styx.cli.output import readable
    from styx.cli.run_directory import gateway_url

    if not 0 < timeout <= TIMEOUT_SECONDS_MAX:
        raise usage_error(
            f"--timeout is a number of seconds above 0 and up to {TIMEOUT_SECONDS_MAX:g}, got {timeout:g}"
        )
    url = gateway_url(url)
    try:
        outcome = read_outcome(get_entity(url, GatewayRead(operator, key, timeout, api_key, ca)), url)
    except NoReply as error:
        print(f"styx: {error}; nothing was changed, ask again", file=sys.stderr)
        return FAILURE
    if outcome.complaint:
        print(outcome.complaint, file=sys.stderr)
    if outcome.output:
        print(readable(outcome.output))
    return outcome.exit_code
