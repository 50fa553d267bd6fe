"""Requests to the entities of one ingest, each repeated until it is answered: all of them can be repeated harmlessly.

What an answer means is for the caller; an app that has no such ingest now is waited for, and told.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from styx.errors import EngineFailed, InTransactionError, RequestRejected, StyxError
from styx.gateway.engine import Engine
from styx.messages import reply_of
from styx.model.request import encode_arguments

REPLY_SECONDS_MAX: Final = 30.0
"""A request without a reply for longer is sent once more."""
PAUSE_SECONDS: Final = 0.2
"""Behind a first failure; each further one doubles it."""
PAUSE_SECONDS_MAX: Final = 5.0
TOLD_AFTER: Final = 3
"""Failures of one request before they are told; a generation's change costs one or two."""

_log = logging.getLogger("styx.ingest")


class Sender:
    """Sends to the operator `ingest` of the engine's app, as it is at that time."""

    def __init__(self, engine: Engine, ingest: str) -> None:
        self.failing: str | None = None
        """Why requests fail now; None if they do not."""
        self._engine = engine
        self._ingest = ingest

    async def ask(self, key: tuple[str, int], function: str, *args: Any) -> Any:
        """The result of a function of the entity `key`, as plain data; waits for as long as that takes."""
        arguments, failures, pause_s = encode_arguments(args), 0, PAUSE_SECONDS
        while True:
            try:
                result = await self._asked(key, function, arguments)
            except (StyxError, InTransactionError, OSError) as error:
                failures += 1
                self.failing = f"{type(error).__name__}: {error}"
                if failures == TOLD_AFTER:
                    _log.warning("ingest %s, partition %d, waits: %s", self._ingest, key[1], self.failing)
            else:
                if failures >= TOLD_AFTER:
                    _log.warning("ingest %s, partition %d, goes on", self._ingest, key[1])
                if failures:
                    self.failing = None
                return result
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_SECONDS_MAX)

    async def _asked(self, key: tuple[str, int], function: str, arguments: bytes) -> Any:
        engine = self._engine
        reason = engine.unavailable_reason
        if reason is not None:
            raise RequestRejected("unavailable", reason)
        operator = engine.app.operator(self._ingest)
        if operator.served:
            raise EngineFailed(f"the app's operator {self._ingest!r} is no ingest any more")
        request = engine.maker.make(operator, operator.check_key(key), function, arguments)
        async with asyncio.timeout(REPLY_SECONDS_MAX):
            return reply_of(await engine.submit_request(request)).unwrap()
