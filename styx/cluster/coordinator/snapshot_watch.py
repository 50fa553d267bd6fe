"""Whether snapshots succeed, and if not, whether the store is reachable: for people, never for the protocol."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from styx.deployment.claim import NAME
from styx.host.background import Background
from styx.store.base import Store

PROBE_SECONDS: Final = 5.0
"""Between two looks at a store while snapshots fail."""

_log = logging.getLogger("styx.coordinator")


class SnapshotWatch:
    """Times are the event loop's, in seconds. `store_problem` says what is wrong with the store, None if nothing."""

    def __init__(self, store: Store, background: Background) -> None:
        self.stored_at_s: float | None = None
        self.failing_since_s: float | None = None
        self.failures = 0
        self.store_problem: str | None = None
        self._store = store
        self._background = background
        self._epoch_failed = -1
        self._probing: asyncio.Task[None] | None = None

    def completed(self, now_s: float) -> None:
        """A snapshot is stored."""
        if self.failing_since_s is not None:
            _log.info("snapshots succeed again")
        self.stored_at_s = now_s
        self.failing_since_s = self.store_problem = None
        self.stop()

    def failed(self, now_s: float, epoch: int) -> None:
        """The snapshot of an epoch failed; hearing of it again changes nothing."""
        if epoch == self._epoch_failed:
            return
        self._epoch_failed = epoch
        self.failures += 1
        if self.failing_since_s is None:
            self.failing_since_s = now_s
            _log.warning("the snapshot of epoch %d failed; requests are served, and the log grows meanwhile", epoch)
        if self._probing is None:
            self._probing = asyncio.get_running_loop().create_task(self._probe(), name="styx-store-probe")

    def stop(self) -> None:
        """Looks no more."""
        if self._probing is not None:
            self._probing.cancel()
            self._probing = None

    async def _probe(self) -> None:
        while True:
            try:
                await self._background.run(lambda: self._store.get(NAME))
            except OSError as error:
                self.store_problem = f"the store is out of reach: {error}"
            except Exception as error:  # noqa: BLE001 - told to a person, who can do something about it
                self.store_problem = f"{type(error).__name__}: {error}"
            else:
                self.store_problem = None
            await asyncio.sleep(PROBE_SECONDS)
