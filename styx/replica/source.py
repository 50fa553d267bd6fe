"""Where the moments of a replica come from: the snapshots of a store, or also the closed epochs of a cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from prometheus_client.core import Metric

from styx.metrics.exposition import counter, gauge
from styx.replica.follower import Follower, Moment

LOOK_SECONDS: Final = 1.0
"""Between two looks for a later snapshot."""

_log = logging.getLogger("styx.replica")


class Source(Protocol):
    """`moment` is the newest one, None before the first. `trouble` says why there is none, or no newer one."""

    @property
    def moment(self) -> Moment | None: ...

    @property
    def trouble(self) -> str | None: ...

    async def run(self, later: Callable[[], None]) -> None:
        """Follows until it is cancelled; calls `later` when there is another moment."""
        ...

    def told(self) -> Mapping[str, object]:
        """Where it stands, for people, beside what the moment says."""
        ...

    def metrics(self) -> Iterator[Metric]:
        """Its own."""
        ...


class SnapshotSource:
    """The snapshots that `follower` takes: a `Source`."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    @property
    def moment(self) -> Moment | None:
        """As `Source.moment`."""
        return self._follower.moment

    @property
    def trouble(self) -> str | None:
        """As `Source.trouble`."""
        return self._follower.trouble

    async def run(self, later: Callable[[], None]) -> None:
        """As `Source.run`."""
        while True:
            trouble = self.trouble
            taken = await asyncio.to_thread(self._follower.look)
            if self.trouble not in (None, trouble):
                _log.warning("%s", self.trouble)
            if taken:
                tell(self._follower)
                later()
            await asyncio.sleep(LOOK_SECONDS)

    def told(self) -> Mapping[str, object]:
        """As `Source.told`."""
        return {"follows": "snapshots"}

    def metrics(self) -> Iterator[Metric]:
        """As `Source.metrics`."""
        return snapshot_metrics(self._follower)


def tell(follower: Follower) -> None:
    """Says in the log which snapshot was taken."""
    assert follower.moment is not None, "one was taken"
    state = follower.moment.state
    _log.info("the snapshot of epoch %d, version %d, in %.2f s", state.epoch, state.version, follower.followed.seconds)


def snapshot_metrics(follower: Follower) -> Iterator[Metric]:
    """Those of the snapshots that were taken."""
    followed = follower.followed
    passed_over = "Snapshots that could not be read."
    yield counter("styx_replica_snapshots_total", "Snapshots taken from the store.", followed.taken)
    yield counter("styx_replica_snapshots_passed_over_total", passed_over, followed.passed_over)
    yield counter("styx_replica_read_bytes_total", "Bytes read of snapshots' objects.", followed.bytes_read)
    yield gauge("styx_replica_take_seconds", "What the last snapshot took.", followed.seconds)
