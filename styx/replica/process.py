"""The process `styx replica`: a follower on a thread of its own, the service over what it holds, and what both tell."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from styx.metrics.exposition import Exposition, counter, gauge
from styx.query.service import Limits
from styx.replica.application import SqlApplication
from styx.replica.arrow_rows import ArrowRows
from styx.replica.follower import Follower, Moment
from styx.replica.service import NothingToAsk, Places, ReplicaService

LOOK_SECONDS: Final = 1.0
"""Between two looks for a later snapshot."""

_log = logging.getLogger("styx.replica")


class ReplicaProcess:
    """Follows by `follower`, and answers queries that may each use `most`; `rows` are shared among them."""

    def __init__(self, follower: Follower, rows: ArrowRows, places: Places, most: Limits) -> None:
        self._follower = follower
        self._rows = rows
        self._later = asyncio.Event()
        self._broken: str | None = None
        self._exposition = Exposition(self._collect, with_process=True)
        self.service = ReplicaService(self.now, rows, places)
        self.application = SqlApplication(
            self.service,
            most,
            note=self._note,
            status_of=self.status,
            unready=lambda: self._follower.trouble if self._follower.moment is None else None,
            broken=lambda: self._broken,
            later=lambda: self._later,
            metrics_of=self._exposition.text,
        )

    def now(self) -> Moment:
        """The newest moment; raises `NothingToAsk`."""
        moment = self._follower.moment
        if moment is None:
            raise NothingToAsk(f"the replica has no state yet: {self._follower.trouble}")
        return moment

    async def run(self) -> None:
        """Follows until it is cancelled."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(LOOK_SECONDS)
        except Exception as error:
            self._broken = f"the replica does not follow any more: {type(error).__name__}: {error}"
            raise

    async def _look(self) -> None:
        trouble = self._follower.trouble
        taken = await asyncio.to_thread(self._follower.look)
        if self._follower.trouble not in (None, trouble):
            _log.warning("%s", self._follower.trouble)
        if not taken:
            return
        moment = self.now()
        _log.info(
            "epoch %d of version %d, in %.2f s",
            moment.state.epoch,
            moment.state.version,
            self._follower.followed.seconds,
        )
        before, self._later = self._later, asyncio.Event()
        before.set()

    # What it tells -----------------------------------------------------------------------------------------

    def status(self) -> dict[str, object]:
        """Where it stands, for people."""
        moment = self._follower.moment
        told: dict[str, object] = {"trouble": self._follower.trouble, "rows_bytes": self._rows.bytes}
        if moment is not None:
            state = moment.state
            told |= {"app": moment.schema.app, "epoch": state.epoch, "version": state.version}
            told |= {"age_s": _age(moment), "state_bytes": state.bytes}
        return told

    def _note(self) -> str:
        moment = self.now()
        return f"App {moment.schema.app}, the state at the end of epoch {moment.state.epoch}."

    def _collect(self) -> Iterator[Metric]:
        moment, followed = self._follower.moment, self._follower.followed
        epoch, age, size = (-1, float("nan"), 0) if moment is None else _facts(moment)
        yield gauge("styx_replica_epoch", "The epoch whose state is asked; -1: none.", epoch)
        yield gauge("styx_replica_age_seconds", "Since the state of that epoch was found in the store.", age)
        yield gauge(
            "styx_replica_in_trouble", "1 if the newest snapshot cannot be had.", self._follower.trouble is not None
        )
        yield gauge("styx_replica_state_bytes", "Memory of the encoded state, about.", size)
        yield gauge("styx_replica_rows_bytes", "Shared memory of rows that were made for queries.", self._rows.bytes)
        yield counter("styx_replica_rows_made_total", "Rows that were made for queries.", self._rows.rows_made)
        yield counter("styx_replica_snapshots_total", "Snapshots taken from the store.", followed.taken)
        yield counter(
            "styx_replica_snapshots_passed_over_total", "Snapshots that could not be read.", followed.passed_over
        )
        yield counter("styx_replica_read_bytes_total", "Bytes read of snapshots' objects.", followed.bytes_read)
        yield gauge("styx_replica_take_seconds", "What the last snapshot took.", followed.seconds)


def _facts(moment: Moment) -> tuple[int, float, int]:
    return moment.state.epoch, _age(moment), moment.state.bytes


def _age(moment: Moment) -> float:
    return max(0.0, time.time() - moment.state.closed_s)
