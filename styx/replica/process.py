"""The process `styx replica`: what it follows, the service over what that holds, and what both tell."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from prometheus_client.core import Metric

from styx.metrics.exposition import Exposition, counter, gauge
from styx.query.service import Limits, QueryRefused
from styx.replica.application import SqlApplication
from styx.replica.arrow_rows import ArrowRows
from styx.replica.follower import Moment
from styx.replica.service import NothingToAsk, NotReached, Places, ReplicaService
from styx.replica.source import Source
from styx.replica.waits import WAITING_MAX, EpochWaits


class ReplicaProcess:
    """Follows `source`, and answers queries that may each use `most`; `rows` are shared among them."""

    def __init__(self, source: Source, rows: ArrowRows, places: Places, most: Limits) -> None:
        self._source = source
        self._rows = rows
        self._later = asyncio.Event()
        self._waits = EpochWaits()
        self._broken: str | None = None
        self._exposition = Exposition(self._collect, with_process=True)
        self.service = ReplicaService(self.now, rows, places)
        self.application = SqlApplication(
            self.service,
            most,
            note=self._note,
            status_of=self.status,
            unready=lambda: self._source.trouble if self._source.moment is None else None,
            broken=lambda: self._broken,
            later=lambda: self._later,
            reach=self.reach,
            metrics_of=self._exposition.text,
        )

    def now(self) -> Moment:
        """The newest moment; raises `NothingToAsk`."""
        moment = self._source.moment
        if moment is None:
            raise NothingToAsk(f"the replica has no state yet: {self._source.trouble}")
        return moment

    async def reach(self, epoch: int, seconds: float) -> None:
        """Returns when the newest moment is at least at the end of that epoch. Raises `NotReached` if it is not within
        so many seconds, and `QueryRefused` if too many wait.
        """
        moment = self._source.moment
        if moment is not None and moment.state.epoch >= epoch:
            return
        if self._waits.waiting >= WAITING_MAX:
            raise QueryRefused(f"{WAITING_MAX} requests wait for an epoch: try again soon")
        try:
            await self._waits.wait(epoch, seconds)
        except TimeoutError:
            raise NotReached(epoch, seconds, self._where()) from None

    async def run(self) -> None:
        """Follows until it is cancelled."""
        try:
            await self._source.run(self._tell_later)
        except Exception as error:
            self._broken = f"the replica does not follow any more: {type(error).__name__}: {error}"
            raise

    def _tell_later(self) -> None:
        before, self._later = self._later, asyncio.Event()
        before.set()
        moment = self._source.moment
        if moment is not None:
            self._waits.come(moment.state.epoch)

    # What it tells -----------------------------------------------------------------------------------------

    def _where(self) -> str:
        moment, trouble = self._source.moment, self._source.trouble
        where = "it has no state yet" if moment is None else f"it is at epoch {moment.state.epoch}"
        return where if trouble is None else f"{where}, and {trouble}"

    def status(self) -> dict[str, object]:
        """Where it stands, for people."""
        moment = self._source.moment
        told: dict[str, object] = {"trouble": self._source.trouble, "rows_bytes": self._rows.bytes}
        told |= self._source.told()
        if moment is not None:
            state = moment.state
            told |= {"app": moment.schema.app, "epoch": state.epoch, "version": state.version}
            told |= {"age_s": moment.age_s, "state_bytes": state.bytes}
        return told

    def _note(self) -> str:
        moment = self.now()
        return f"App {moment.schema.app}, the state at the end of epoch {moment.state.epoch}."

    def _collect(self) -> Iterator[Metric]:
        moment, trouble = self._source.moment, self._source.trouble
        epoch, age, size = (-1, float("nan"), 0) if moment is None else _facts(moment)
        yield gauge("styx_replica_epoch", "The epoch whose state is asked; -1: none.", epoch)
        yield gauge("styx_replica_age_seconds", "Since that state was the newest that is known of.", age)
        yield gauge("styx_replica_in_trouble", "1 if the newest state cannot be had.", trouble is not None)
        yield gauge("styx_replica_state_bytes", "Memory of the encoded state, about.", size)
        yield gauge("styx_replica_rows_bytes", "Shared memory of rows that were made for queries.", self._rows.bytes)
        yield counter("styx_replica_rows_made_total", "Rows that were made for queries.", self._rows.rows_made)
        yield from self._source.metrics()


def _facts(moment: Moment) -> tuple[int, float, int]:
    return moment.state.epoch, moment.age_s, moment.state.bytes
