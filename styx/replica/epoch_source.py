"""Follows the closed epochs of a running cluster, from the newest snapshot of its store on.

`History` decides which state goes on where; this does the I/O. No worker waits for a replica: one that falls behind, or
whose next epoch is not kept any more, is dropped, and catches up by a later snapshot. While nobody gives epochs, later
snapshots are shown as they come. Never writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Final

from prometheus_client.core import Metric

from styx.cluster.gateway.changes import GenerationChanges
from styx.cluster.gateway.reads import RETRY_SECONDS, ClusterReads, until
from styx.cluster.wire import Owners
from styx.errors import ConfigurationError, RequestRejected, SnapshotTooOld, StyxError
from styx.metrics.exposition import counter, gauge, histogram
from styx.metrics.histogram import Histogram
from styx.model.changes import FROM_NOW, Given
from styx.replica.age import Age
from styx.replica.cluster import Cluster
from styx.replica.follower import AGAIN_SECONDS, Described, Follower, Moment
from styx.replica.history import Began, History, began
from styx.replica.source import LOOK_SECONDS, snapshot_metrics, tell
from styx.replica.state import EpochState, TooLarge

HEARD_SECONDS: Final = 0.25
"""Between two looks at who was heard of."""
LAG_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0, 300.0, 3600.0)
_NO_OPERATOR: Final = "~"
"""No operator has this name, so nothing comes."""
_MIB: Final = 2**20

_log = logging.getLogger("styx.replica")


class EpochSource:
    """The closed epochs of `cluster`, from snapshots that `snapshots` takes on: a `Source`. `clock` gives seconds since
    1970. The state may take `bytes_max`, about.

    `following` says whether epochs come now; `dropped` counts how often they did not go on and a snapshot had to help.
    """

    def __init__(
        self, snapshots: Follower, cluster: Cluster, bytes_max: int, clock: Callable[[], float] = time.time
    ) -> None:
        self.following = False
        self.epochs = self.dropped = 0
        self.lag = Histogram(LAG_SECONDS)
        self._last_lag_s: float | None = None
        self._snapshots = snapshots
        self._cluster = cluster
        self._bytes_max = bytes_max
        self._clock = clock
        self._history = History(bytes_max)
        self._age = Age()
        self._described: dict[int, Described] = {}
        self._shown: Moment | None = None
        self._trouble: str | None = f"the coordinator at {cluster.coordinator} has not been reached yet"
        self._refusal: str | None = None
        self._later: Callable[[], None] = lambda: None
        self._looked_s = -float("inf")
        self._keeper = _Keeper(cluster.reads)

    @property
    def moment(self) -> Moment | None:
        """As `Source.moment`."""
        shown = self._shown
        return None if shown is None else shown._replace(as_of_s=max(self._age.as_of_s, shown.state.closed_s))

    @property
    def trouble(self) -> str | None:
        """As `Source.trouble`."""
        return self._trouble

    async def run(self, later: Callable[[], None]) -> None:
        """As `Source.run`. Raises `ConfigurationError` if cluster and store are not of one deployment."""
        self._later = later
        tasks = [asyncio.ensure_future(each) for each in (self._cluster.run(), self._follow(), self._listen())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._keeper.end()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    # Following ---------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        reads = self._cluster.reads
        while True:
            known, changed = reads.known, reads.changed
            now = None if known is None else began(known)
            place = None if now is None else self._history.place(now)
            self._show()
            pause = LOOK_SECONDS
            if known is not None and now is not None and place is not None:
                pause = await self._generation(known, now, place)
                self.following = False
                self._age.ends()
            if known is not None:
                self._keeper.keep(known)
            if not await self._looked(now if self._cluster.connected else None, now, place is None):
                await until(changed, pause)

    async def _generation(self, known: Owners, now: Began, place: int) -> float:
        """Follows one generation for as long as it gives epochs. Returns the pause before another attempt."""
        try:
            await self._described_of(now.version)
            changes = GenerationChanges(self._cluster.reads, known, "", None, place)
            async with aclosing(changes.given()) as given:
                async for each in given:
                    self._hear(now)
                    if self._history.newest is None:
                        break
                    self._take(each, now)
        except SnapshotTooOld as error:
            self._refused(now, place, error)
        except TooLarge as error:
            self._tell(
                f"the state takes {error.bytes // _MIB + 1} MiB, and --memory allows {self._bytes_max // _MIB}: it "
                "stays as it is"
            )
            return AGAIN_SECONDS
        except RequestRejected as error:
            self._tell(f"the workers do not give their epochs: {error}")
            return LOOK_SECONDS
        except (StyxError, OSError) as error:
            self._tell(f"the tables of version {now.version} are not known: {error}")
            return LOOK_SECONDS
        else:
            level = logging.DEBUG if self.following else logging.WARNING
            self._tell(
                f"no epochs of generation {now.generation} come: a worker cannot be reached, or it has ended", level
            )
        return RETRY_SECONDS

    def _hear(self, now: Began) -> None:
        """Another generation may run, while this one still gives what it has closed."""
        known = self._cluster.reads.known
        if known is not None and began(known) != now:
            self._history.hear(began(known))

    def _take(self, given: Given, now: Began) -> None:
        if not self.following:
            self.following = True
            self._history.goes_on(now)
            self._snapshots.release()
            self._keeper.end()
            self._trouble = self._refusal = None
            _log.info("follows the epochs of generation %d behind epoch %d", now.generation, given.through)
        now_s = self._clock()
        if given.through < now.recorded:
            given = given._replace(closed_us=0)  # it is run again: it closed long ago, and so did later ones
        newer = self._history.take(given, now_s)
        self.epochs += len(given.epochs)
        if not self._history.caught_up or given.through < now.recorded:
            self._age.ends()  # what comes next has closed already, however long the workers take to run it again
        else:
            self._age.given(given.closed_us / 1e6 if newer else 0.0, now_s)
            if newer and given.closed_us:
                self._last_lag_s = max(0.0, now_s - given.closed_us / 1e6)
                self.lag.observe(self._last_lag_s)
        self._show()

    def _refused(self, now: Began, place: int, error: SnapshotTooOld) -> None:
        self.dropped += 1
        reached = self._history.place(now) if self.following else None
        self._history.refuse(now, place if reached is None else reached)
        self._refusal = f"it goes on from a later snapshot, because the next epochs are not kept: {error}"
        self._tell(self._refusal)

    def _tell(self, trouble: str, level: int = logging.WARNING) -> None:
        if trouble != self._trouble:
            _log.log(level, "%s", trouble)
        self._trouble = trouble

    # Snapshots ---------------------------------------------------------------------------------------------

    async def _looked(self, connected: Began | None, now: Began | None, needed: bool) -> bool:
        """Looks for a snapshot that helps, at most once in `LOOK_SECONDS`. Returns whether there was one."""
        monotonic_s = time.monotonic()
        if monotonic_s - self._looked_s < LOOK_SECONDS:
            return False
        self._looked_s = monotonic_s
        history, snapshots = self._history, self._snapshots
        held = snapshots.moment
        if held is None or not history.wants(connected, snapshots.generation, held.state.epoch):
            taken = await asyncio.to_thread(
                snapshots.look, lambda generation, epoch: history.wants(connected, generation, epoch)
            )
            if not taken:
                if needed:
                    self._tell(self._why_none(now))
                return False
            tell(snapshots)
        assert snapshots.moment is not None, "it was taken"
        state = snapshots.moment.state
        self._check(snapshots.moment)
        self._described[state.version] = Described(snapshots.moment.schema, snapshots.moment.relations)
        history.begin(connected, snapshots.generation, state)
        self._show()
        return connected is not None

    def _why_none(self, now: Began | None) -> str:
        cluster, snapshots = self._cluster, self._snapshots
        if now is None:
            return cluster.refused or f"the coordinator at {cluster.coordinator} has not said yet who gives epochs"
        if now.generation < self._history.generation:
            return (
                f"the cluster is in generation {now.generation}, and the state here is of generation "
                f"{self._history.generation}: was it restored from a backup? Then start the replica anew"
            )
        return snapshots.trouble or self._refusal or "it waits for the next snapshot, from which it can go on"

    def _check(self, moment: Moment) -> None:
        deployment = self._cluster.deployment
        if deployment is None:
            return
        there = (moment.schema.app, len(moment.state.slots))
        if there != (deployment.app, deployment.n_slots):
            raise ConfigurationError(
                f"the store has app {there[0]!r} with {there[1]} slots, and the coordinator at "
                f"{self._cluster.coordinator} coordinates {deployment.app!r} with {deployment.n_slots}: give the "
                "coordinator's --store"
            )

    # What is shown -----------------------------------------------------------------------------------------

    def _show(self) -> None:
        shown, before = self._history.shown, None if self._shown is None else self._shown.state
        if shown is before:
            return
        if shown is None:  # in another history a version is another one, too
            self._described = {}
            self._snapshots.release()
        self._shown = None if shown is None else self._moment(shown)
        self._later()

    def _moment(self, state: EpochState) -> Moment:
        return Moment(state, *self._described[state.version])

    async def _described_of(self, version: int) -> None:
        if version not in self._described:
            found = await asyncio.to_thread(self._snapshots.described, version)
            kept = (
                {} if self._shown is None else {self._shown.state.version: self._described[self._shown.state.version]}
            )
            self._described = {**kept, version: found}

    async def _listen(self) -> None:
        """Notes who was heard of."""
        while True:
            await asyncio.sleep(HEARD_SECONDS)
            known, received = self._cluster.reads.known, self._cluster.bytes_received()
            wanted = {None} if known is None else {None, *known.owners.values()}
            whole = wanted <= received.keys()
            self._age.look({each: received[each] for each in wanted} if whole else {}, self._clock())

    # What it tells -----------------------------------------------------------------------------------------

    def told(self) -> Mapping[str, object]:
        """As `Source.told`."""
        return {
            "follows": "epochs" if self.following else "snapshots",
            "generation": self._history.generation,
            "coordinator_connected": self._cluster.connected,
            "lag_s": self._last_lag_s,
        }

    def metrics(self) -> Iterator[Metric]:
        """As `Source.metrics`."""
        yield gauge("styx_replica_following", "1 if the closed epochs of the cluster come.", self.following)
        yield gauge("styx_replica_generation", "The generation of the newest state.", self._history.generation)
        yield gauge("styx_registered", "1 if the coordinator is there.", self._cluster.connected)
        yield histogram("styx_replica_lag_seconds", "From the close of an epoch to its place here.", self.lag)
        yield counter("styx_replica_epochs_total", "Epochs with changes that were taken.", self.epochs)
        yield counter("styx_replica_dropped_total", "Times that a later snapshot had to help.", self.dropped)
        yield from snapshot_metrics(self._snapshots)


class _Keeper:
    """Follows nothing, while a snapshot is waited for: workers do not keep changes for long that nobody follows."""

    def __init__(self, reads: ClusterReads) -> None:
        self._reads = reads
        self._known: Owners | None = None
        self._task: asyncio.Task[None] | None = None

    def keep(self, known: Owners) -> None:
        """The workers of this generation are to keep what they close from now on."""
        if self._task is None or self._task.done() or known is not self._known:  # a number may come again
            self.end()
            self._known = known
            self._task = asyncio.ensure_future(self._follow(known))

    def end(self) -> None:
        """Somebody follows."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self, known: Owners) -> None:
        changes = GenerationChanges(self._reads, known, _NO_OPERATOR, None, FROM_NOW)
        with contextlib.suppress(StyxError, OSError):  # the next loop tries again
            async with aclosing(changes.given()) as given:
                async for _ in given:
                    pass
