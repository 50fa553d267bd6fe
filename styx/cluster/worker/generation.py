"""What a worker has for one generation only: an appender of its own, its peers, its feed, and the load that begins it.

A generation that ends leaves nothing behind: its appender is fenced, its feed is moved, its ends are not told. Paper
section 7.2.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from styx.cluster.identifiers import worker_producer
from styx.cluster.worker.arrival_gate import ArrivalGate
from styx.cluster.worker.externals import ClusterExternals
from styx.cluster.worker.loading import Loaded, load
from styx.cluster.worker.peers import Unreachable
from styx.cluster.worker.recovery_watch import ReplayWatch, tell_lost
from styx.cluster.worker.reply_log import ReplyLog
from styx.log.kafka.appender import Appender
from styx.log.kafka.errors import Fenced
from styx.log.kafka.feed import RequestFeed
from styx.log.kafka.transaction import ProducerIdentity
from styx.protocol import Recover
from styx.worker.events import LoadState, StateLoaded
from styx.worker.set_aside import Place

if TYPE_CHECKING:
    from styx.cluster.worker.session import WorkerSession

FETCHES_PER_EPOCH: Final = 2
"""What arrives while an epoch is open waits for the next one, so there is no hurry to fetch it."""
FETCH_PAUSE_SECONDS_MAX: Final = 0.04
"""A fetch that comes late for an epoch makes its requests wait for the one after."""
LOAD_RETRY_SECONDS: Final = 0.2
"""Before a load that could not reach log or store is tried again; it is for as long as the generation lasts."""

_log = logging.getLogger("styx.worker")


class Generation:
    """`connected` once all peers are; before that their loss is an unreachable peer, told once."""

    def __init__(self, session: WorkerSession, recover: Recover) -> None:
        self.number = recover.generation
        self.connected = False
        self.epochs_end = 0
        self.aside: frozenset[Place] = frozenset()
        self.feed: RequestFeed | None = None
        node = session.node
        self._session = session
        self._recover = recover
        place = sorted(recover.addresses).index(session.core.id)
        self.appender = Appender(
            node.log,
            transactional_id=worker_producer(session.deployment.app, place),
            # Not taken over here: this generation may have ended long ago, and nobody would notice.
            identity=ProducerIdentity(*recover.producers[place]),
            on_failure=self._refused,
        )
        self.replies = ReplyLog(
            self.appender,
            node.topics.replies,
            session.deployment.reply_partitions,
            lambda error: session.broken(self, -1, f"a reply cannot be appended: {error}"),
        )
        self.replay = ReplayWatch(node, recover, session.deployment.reply_partitions)
        self.externals = ClusterExternals(session, self)
        self.gate = ArrivalGate(place, len(recover.addresses), lambda arrived: session.deliver(self, arrived))
        self._task: asyncio.Task[None] | None = None
        self._began_s = time.monotonic()

    def _refused(self, error: BaseException) -> None:
        self._session.node.counters.fenced += isinstance(error, Fenced)
        self._session.broken(self, -1, f"the log refuses appends: {error}")

    def end(self) -> None:
        """Everything that is under way for it is dropped."""
        if self._task is not None:
            self._task.cancel()
        self.appender.abort()
        self.replies.end()
        self.externals.stop()
        self.gate.stop()
        if self.feed is not None:
            self.feed.assign({})
            self._session.node.let_go(self.feed.stop())

    def load(self, wanted: LoadState) -> None:
        """Begins to load; `StateLoaded` comes when peers, appender and feed are there as well."""
        self._task = asyncio.get_running_loop().create_task(self._load(wanted), name=f"styx-load-{self.number}")
        self._task.add_done_callback(self._loading_ended)

    def _loading_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Unreachable):
            self._session.broken(self, error.peer, str(error))
        elif error is not None:
            _log.error("loading generation %d failed: %s", self.number, error, exc_info=error)
            self._session.broken(self, -1, f"loading failed: {type(error).__name__}: {error}")

    async def _load(self, wanted: LoadState) -> None:
        session = self._session
        connecting = asyncio.create_task(self._connect())
        starting = asyncio.create_task(self.appender.start())
        try:
            loaded = await self._loaded(wanted)
            await asyncio.gather(connecting, starting)
        finally:
            connecting.cancel()
            starting.cancel()
        self.epochs_end, self.aside = loaded.epochs_end, loaded.aside
        self.replies.ends[:] = loaded.reply_ends
        self.externals.take(loaded.externals)
        answer = loaded.answer
        if isinstance(answer, StateLoaded):
            self.feed = RequestFeed(
                session.node.log,
                session.node.topics.requests,
                deliver=self.gate.arrive,
                on_failure=lambda error: session.broken(self, -1, f"requests cannot be fetched: {error}"),
                pause_s=self._fetch_pause_s,
            )
            await self.feed.start()
            self.feed.assign({slot: part.next_offset for slot, part in answer.slots.items()})
        counters = session.node.counters
        counters.recoveries += 1
        counters.recovery_s = time.monotonic() - self._began_s
        session.give(self, answer)

    def _fetch_pause_s(self) -> float:
        epoch_s = self._session.node.watch.last_epoch_s
        return max(self.gate.fetch_pause_s(), min(FETCH_PAUSE_SECONDS_MAX, epoch_s / FETCHES_PER_EPOCH))

    async def _connect(self) -> None:
        await self._session.peers.connect(self._session.core.id, self._recover.addresses)
        self.connected = True

    async def _loaded(self, wanted: LoadState) -> Loaded:
        node, n_slots, app = self._session.node, self._session.deployment.n_slots, self._session.core.app

        def run() -> Loaded:
            loaded = load(wanted, n_slots, node.reader(), node.store)
            if isinstance(loaded.answer, StateLoaded):
                tables = {slot: part.tables for slot, part in loaded.answer.slots.items()}
                node.counters.operators_lost += tell_lost(app, tables, n_slots)
            return loaded

        failures = 0
        while True:
            try:
                return await node.background.run(run)
            except OSError as error:
                failures += 1
                if failures == 1:
                    _log.warning("loading generation %d waits for log or store: %s", self.number, error)
                await asyncio.sleep(LOAD_RETRY_SECONDS)
