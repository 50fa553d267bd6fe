"""Reaching the coordinator: dials it until it answers, without giving up, and logs each reason for waiting once.

Processes of a cluster are started together, so a missing answer is logged only after a while, and a refusal at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from styx.transport import Connection, Hello, Refused, Security, dial
from styx.transport.handshake import Refusal

DIAL_SECONDS_MAX: Final = 2.0
PATIENCE_SECONDS: Final = 3.0
"""How long a coordinator may be away before that is told."""


async def reach_coordinator(
    address: str,
    security: Security,
    hello: Hello,
    retry_seconds: float,
    log: logging.Logger,
    on_refused: Callable[[Refused], None] = lambda _: None,
) -> Connection:
    """A connection to the coordinator at `address`, not yet started; attempts are `retry_seconds` apart.

    `on_refused` hears of each refusal. Raises `ConfigurationError` for what no attempt can mend.
    """
    loop = asyncio.get_running_loop()
    began_s, told = loop.time(), set[str]()
    while True:
        try:
            return await dial(address, security, hello, DIAL_SECONDS_MAX)
        except OSError as error:
            reason = str(error)
            refused = isinstance(error, Refused) and error.refusal is not Refusal.HUNG_UP
            if isinstance(error, Refused):
                on_refused(error)
            if reason not in told and (refused or loop.time() - began_s >= PATIENCE_SECONDS):
                told.add(reason)
                log.warning("waiting for the coordinator: %s", reason)
            await asyncio.sleep(retry_seconds)
