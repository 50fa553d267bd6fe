"""The connection to the coordinator of a process that hears what gateways hear. A lost one is made again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from styx.cluster.reaching import reach_coordinator
from styx.transport import Connection, Hello, Refused, Security

RECONNECT_SECONDS: Final = 0.5
"""The pause before another attempt to reach the coordinator."""
PING_SECONDS: Final = 0.25
SILENCE_SECONDS: Final = 3.0
"""A coordinator that is silent for longer counts as lost, although the connection is open."""


class CoordinatorLink:
    """To the coordinator at `address`. `hear` takes its messages, one after the other; `reached` is called when it is
    reached, `lost` with the reason when the connection ends, and `refused` with each refusal. `what` names the process
    in the coordinator's log.
    """

    def __init__(
        self,
        address: str,
        security: Security,
        hello: Hello,
        log: logging.Logger,
        what: str,
        hear: Callable[[bytes], Awaitable[None]],
        *,
        reached: Callable[[], None] = lambda: None,
        lost: Callable[[str], None] = lambda _: None,
        refused: Callable[[Refused], None] = lambda _: None,
    ) -> None:
        self.connection: Connection | None = None
        self._reach = partial(reach_coordinator, address, security, hello, RECONNECT_SECONDS, log, refused)
        self._what = what
        self._hear = hear
        self._reached = reached
        self._lost = lost

    async def run(self) -> None:
        """Hears until it is cancelled. Raises what `hear` raises, and `ConfigurationError` for what no attempt can
        mend.
        """
        while True:
            link = await self._reach()
            heard: asyncio.Queue[bytes | None] = asyncio.Queue()
            link.start(
                partial(_put, heard),
                partial(self._ended, heard),
                ping_seconds=PING_SECONDS,
                silence_seconds=SILENCE_SECONDS,
            )
            self.connection = link
            self._reached()
            try:
                while (payload := await heard.get()) is not None:
                    await self._hear(payload)
            finally:
                self.connection = None
                link.abort(f"the {self._what} no longer listens")
            await asyncio.sleep(RECONNECT_SECONDS)

    def _ended(self, heard: asyncio.Queue[bytes | None], link: Connection, reason: str) -> None:
        if self.connection is link:
            self._lost(reason)
        heard.put_nowait(None)


def _put(heard: asyncio.Queue[bytes | None], _: Connection, payloads: list[bytes]) -> None:
    for payload in payloads:
        heard.put_nowait(payload)
