"""`styx state`: prints an entity's state, read through a gateway."""

from __future__ import annotations

from typing import Final

from cyclopts import App

from styx.cli.common_options import (
    ApiKey,
    Authority,
    EntityKey,
    GatewayUrl,
    OperatorName,
    ReplyTimeout,
    TableName,
    check_timeout,
)
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT, TIMEOUT_SECONDS_MAX

EXAMPLES: Final = """\
Examples:
  styx state get account alice
  styx state get cart alice --rows items
  styx state get order '[1,2]' --url http://shop.internal:8080

Exit codes:
  0    the state is on standard output
  1    no gateway, no reply in time, or the stored state does not fit its type
  2    rejected: no such operator or table, or a key of another type
  3    there is no such entity, and nothing is on standard output
"""


def state(sort_key: int) -> App:
    """The group of commands `styx state`; `sort_key` is its place in the list of commands."""
    commands = App(name="state", help="Look at an entity.", help_format="plaintext", sort_key=sort_key)
    commands.command(get, help_epilogue=EXAMPLES)
    return commands


def get(
    operator: OperatorName,
    key: EntityKey,
    /,
    *,
    url: GatewayUrl = None,
    rows: TableName = None,
    timeout: ReplyTimeout = TIMEOUT_SECONDS_DEFAULT,
    api_key: ApiKey = None,
    ca: Authority = None,
) -> int:
    """Print one entity's state as JSON, or its rows in a table.

    It is read in a transaction of its own: all that was answered before is in it.
    A key that begins with a dash and is no number goes after --.
    """
    from styx.cli.gateway_request import GatewayRead, NoReply, get_entity, read_outcome, unread_outcome
    from styx.cli.run_directory import gateway_url

    check_timeout(timeout, TIMEOUT_SECONDS_MAX)
    url = gateway_url(url)
    try:
        outcome = read_outcome(get_entity(url, GatewayRead(operator, key, timeout, api_key, ca, rows)), url)
    except NoReply as error:
        outcome = unread_outcome(str(error))
    return outcome.told()
