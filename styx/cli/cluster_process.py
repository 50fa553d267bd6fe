"""One process of a cluster from its start to its end: its log lines, its event loop, its signals.

The work of the process is a given coroutine.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from styx.cli.serving import run_loop
from styx.cli.supervised import end_with_supervisor
from styx.process.memory import return_large_blocks, tune_collector
from styx.reports.log_setup import set_up_logging
from styx.watchdog import held_interpreter
from styx.watchdog.ending import notice


def run_process(name: str, main: Coroutine[Any, Any, None]) -> None:
    """Runs `main` to its end, as whoever owns the process; raises what it raises."""
    end_with_supervisor()
    log_to_stderr(name)
    return_large_blocks()
    tune_collector()
    run_loop(main)


def log_to_stderr(name: str) -> None:
    """One line for each thing worth telling: when, how bad, by which process, what."""
    set_up_logging(name)
    held_interpreter.write_to(sys.stderr)
    # They tell of each attempt to reach a server that is away; the engine says once what it waits for.
    for library in ("aiokafka", "urllib3"):
        logging.getLogger(library).setLevel(logging.CRITICAL)


async def until_told(
    work: Coroutine[Any, Any, None], before_end: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Runs `work` until SIGTERM or SIGINT, then awaits `before_end()` and cancels it. A second signal waits no longer.

    Raises what `work` raises.
    """
    loop = asyncio.get_running_loop()
    working = asyncio.ensure_future(work)
    told: asyncio.Queue[None] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.put_nowait, None)
    notice()
    first = asyncio.ensure_future(told.get())
    try:
        await asyncio.wait([working, first], return_when=asyncio.FIRST_COMPLETED)
        if before_end is not None and not working.done():
            ending, second = asyncio.ensure_future(before_end()), asyncio.ensure_future(told.get())
            await asyncio.wait([ending, second, working], return_when=asyncio.FIRST_COMPLETED)
            second.cancel()
            ending.cancel()
    finally:
        first.cancel()
        working.cancel()
        await asyncio.wait([working])
    if not working.cancelled():
        working.result()
