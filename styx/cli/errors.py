"""`styx errors`: the last mistakes of an app's functions, with their lines, from every process that ran them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from styx.reports.mistakes import Mistake

URL_DEFAULT: Final = "http://127.0.0.1:8080"
SHOWN_DEFAULT: Final = 20

EXAMPLES: Final = """\
Examples:
  styx errors
  styx errors --limit 1000 --json
  styx errors --url http://10.0.0.7:8082 --url http://10.0.0.8:8082

The command sends STYX_API_KEY to a gateway with API keys. To a worker that asks for
a token, it sends STYX_FACTS_TOKEN, or the token derived from STYX_SECRET.

Exit codes:
  0    they were told, or there are none
  1    a process does not answer
  2    an option is wrong
"""


def errors(
    *,
    url: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="A worker's --http-port, or styx dev; by default those of styx up here, or port 8080.",
            env_var="STYX_ERRORS_URL",
        ),
    ] = (),
    limit: Annotated[int, Parameter(help="Show at most so many, the last seen first.")] = SHOWN_DEFAULT,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON, one object a line.")] = False,
) -> int:
    """Show the last mistakes of the app's functions, with the lines of its code.

    A mistake is an abort that the app did not mean, what an external function
    raised, or a warning. Each place in the code is shown once, with how often it
    was seen. A process remembers the last 1,000 since it started.
    """
    from styx.cli.exit_codes import SUCCESS, CommandFailed, usage_error

    if limit < 1:
        raise usage_error(f"--limit is a number from 1 on, got {limit}")
    workers = () if url else _local()
    found: list[Mistake] = []
    total = 0
    for each in url or workers or (URL_DEFAULT,):
        try:
            page_total, mistakes = _fetched(each, each in workers)
        except OSError as error:
            raise CommandFailed(
                f"no process answers at {each}: {error.strerror or error}\n"
                "Give the address of styx dev, or of a worker's --http-port, with --url."
            ) from None
        total += page_total
        found += mistakes
    found.sort(key=lambda mistake: mistake.time, reverse=True)
    if json:
        _print_json(found[:limit])
        return SUCCESS
    for mistake in found[:limit]:
        times = f", {mistake.times:,} times" if mistake.times > 1 else ""
        print(f"{mistake.time}{times}\n{mistake.text()}\n")
    kept = f"{len(found):,} places" if len(found) != 1 else "1 place"
    print(f"{total:,} seen at {kept}" if total else "No mistake was seen.", flush=True)
    return SUCCESS


def _local() -> tuple[str, ...]:
    """The workers of the `styx up` here; none without one."""
    from styx.cli.run_directory import local_cluster

    local = local_cluster()
    return () if local is None else tuple(local.worker_urls.values())


def _fetched(url: str, worker: bool) -> tuple[int, list[Mistake]]:
    from styx.cli.facts_client import facts_token, fetch
    from styx.reports.mistakes import read_page

    page, key, token = url.rstrip("/") + "/errors", os.environ.get("STYX_API_KEY"), facts_token()
    first = token if worker or not key else key
    status, body = fetch(page, first)
    if status == 401 and token not in (first, None):
        status, body = fetch(page, token)  # it was no gateway's, for which the key is
    try:
        if status == 401:
            raise ValueError("its credential is missing: STYX_API_KEY of a gateway's, STYX_SECRET of a worker's")
        if status != 200:
            raise ValueError(f"it answers with status {status}")
        return read_page(body)
    except ValueError as error:
        raise ConnectionError(f"this is no worker and no styx dev ({error})") from None


def _print_json(mistakes: list[Mistake]) -> None:
    import msgspec

    for mistake in mistakes:
        sys.stdout.write(msgspec.json.encode(mistake).decode() + "\n")
    sys.stdout.flush()
