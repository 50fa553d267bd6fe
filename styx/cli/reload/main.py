"""The program of `styx dev --reload` in the process that stays."""

from __future__ import annotations

import asyncio

from styx.cli.dev_server import set_up_terminal
from styx.cli.exit_codes import CommandFailed
from styx.cli.serving import ServingOptions
from styx.gateway.server import BACKLOG_MAX
from styx.http.server import listen_on
from styx.model.limits import Limits
from styx.process.extras import lacking


def run_watcher(options: ServingOptions) -> int:
    """Watches and serves until it is told to stop; raises `CommandFailed` without watchfiles."""
    try:
        from styx.cli.reload.watcher import Watcher
    except ModuleNotFoundError as error:
        if error.name != "watchfiles":
            raise
        raise CommandFailed(lacking("styx dev --reload", "watchfiles", "reload")) from None
    set_up_terminal()
    limits = options.limits or Limits()
    with listen_on(options.host, options.port, BACKLOG_MAX) as listening:

        async def run() -> int:
            return await Watcher(listening, limits.function_seconds_max).run()

        return asyncio.run(run())
