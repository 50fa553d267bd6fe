"""`styx status`: a cluster as its coordinator sees it, once or live, for people or as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from styx.cluster.coordinator.status import Status

URL_DEFAULT: Final = "http://127.0.0.1:8081"
WATCH_SECONDS: Final = 1.0
"""The time between two fetches with --watch."""
PLAIN_COLUMNS: Final = 160

EXAMPLES: Final = """\
Examples:
  styx status
  styx status --watch
  styx status --json --url http://10.0.0.7:8081

Exit codes:
  0    the cluster runs
  1    it does not, or no coordinator answers
  2    an option is wrong
"""


def status(
    *,
    url: Annotated[
        str | None,
        Parameter(help="The coordinator's --http-port; by default the one of styx up here.", env_var="STYX_STATUS_URL"),
    ] = None,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON, for programs.")] = False,
    watch: Annotated[bool, Parameter(negative=(), help="Go on until Ctrl-C.")] = False,
) -> int:
    """Show epochs, rates, slots by worker, snapshots and lag.

    With --watch on a terminal the table changes in place; elsewhere each look is
    printed, with --json one line each.
    """
    from styx.cli.exit_codes import FAILURE, SUCCESS
    from styx.cli.run_directory import local_cluster

    if url is None:
        local = local_cluster()
        url = URL_DEFAULT if local is None else local.facts_url
    if watch and not json and sys.stdout.isatty():
        _live(url)
    shown = _look(url)
    _show(shown, json, watch)
    while watch:
        _pause()
        shown = _look(url)
        _show(shown, json, watch)
    return SUCCESS if shown.phase == "running" else FAILURE


def _look(url: str) -> Status:
    from styx.cli.exit_codes import CommandFailed
    from styx.cli.facts_client import facts_token, fetch_status

    try:
        return fetch_status(url, facts_token())
    except OSError as error:
        raise CommandFailed(
            f"no coordinator answers at {url}: {error.strerror or error}\n"
            "Give its --http-port's address with --url, or run this where styx up was started."
        ) from None


def _show(shown: Status, json: bool, one_line: bool) -> None:
    import msgspec

    if json:
        text = msgspec.json.encode(shown)
        print((text if one_line else msgspec.json.format(text)).decode(), flush=True)
        return
    from rich.console import Console

    from styx.cli.status_table import status_lines

    # A file or a pipe has no width, and nothing may be cut off there.
    width = None if sys.stdout.isatty() else PLAIN_COLUMNS
    Console(highlight=False, width=width).print(status_lines(shown))


def _live(url: str) -> None:
    from rich.live import Live

    from styx.cli.exit_codes import CommandFailed
    from styx.cli.status_table import status_lines

    with Live(status_lines(_look(url)), auto_refresh=False) as live:
        while True:
            _pause()
            try:
                live.update(status_lines(_look(url)), refresh=True)
            except CommandFailed as error:
                live.update(error.message, refresh=True)


def _pause() -> None:
    import time

    time.sleep(WATCH_SECONDS)
