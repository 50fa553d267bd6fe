"""A worker process's resources for one generation: its appender, its peers, its feed, and the load that begins it.

A generation that ends leaves nothing behind: its appender is fenced, its feed is moved, and its pending notifications
are dropped. Paper section 7.2.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from styx.cluster.wire import events_producer, worker_producer
from styx.cluster.worker.arrival_gate import ArrivalGate
from styx.cluster.worker.event_log import EventLog
from styx.cluster.worker.peers import Unreachable
from styx.cluster.worker.recovery import LoadedGeneration, load, tell_lost
from styx.cluster.worker.reply_log import ReplyLog
from styx.host.external_functions import ExternalFunctions
from styx.host.ports import LogEnds
from styx.kafka.appender import Appender
from styx.kafka.errors import Fenced
from styx.kafka.event_topics import ensure_event_topics
from styx.kafka.tail import RequestFeed
from styx.kafka.transaction import ProducerIdentity
from styx.protocol.messages import Recover
from styx.sequencer.epoch_record import EPOCHS_PARTITION, encode_external
from styx.state.table import NEWEST
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    EmitEvents,
    EmitReplies,
    Event,
    LoadState,
    MarkEvents,
    SlotPartsStored,
    StateLoaded,
    StateUnusable,
    StoreSlots,
)

if TYPE_CHECKING:
    from styx.cluster.worker.session import WorkerSession

FETCHES_PER_EPOCH: Final = 2
"""Fetches while an epoch is open. Requests that arrive then wait for the next epoch, so two are enough."""
FETCH_PAUSE_SECONDS_MAX: Final = 0.04
"""Limit on the pause between fetches, because requests of a late fetch wait for one more epoch."""
LOAD_RETRY_SECONDS: Final = 0.2
"""The pause before a load that could not reach log or store is tried again, until the generation ends."""

_log = logging.getLogger("styx.worker")

T = TypeVar("T")


class Generation:
    """The resources of one generation. `connected` once all peers are connected. A peer lost before that is reported as
    unreachable, once.
    """

    def __init__(self, session: WorkerSession, recover: Recover) -> None:
        self.number = recover.generation
        self.connected = False
        self._epochs_end = 0
        self.feed: RequestFeed | None = None
        self._snapshot_since_s = 0.0
        node = session.node
        self._session = session
        self._recover = recover
        place = sorted(recover.addresses).index(session.core.id)
        self.appender = Appender(
            node.log,
            transactional_id=worker_producer(session.deployment.app, place),
            # The coordinator took this identity over. A worker whose generation has ended must not take one over
            # itself.
            identity=ProducerIdentity(*recover.producers[place]),
            on_failure=self._refused,
        )
        self.replies = ReplyLog(
            self.appender,
            node.topics.replies,
            session.deployment.reply_partitions,
            lambda error: session.broken(self, -1, f"a reply cannot be appended: {error}"),
        )
        self.events = self._event_log(recover, place)
        # The end of the generation does not wait for running calls. The next one makes a call again unless its outcome
        # is in the log.
        self.externals = ExternalFunctions(
            asyncio.get_running_loop(),
            session.deployment.limits,
            lambda what, error: session.broken(self, -1, f"{what} failed: {error}"),
            node.reports.external,
        )
        self.gate = ArrivalGate(place, len(recover.addresses), partial(session.deliver, recover.generation))
        self._task: asyncio.Task[None] | None = None
        self._began_s = time.monotonic()

    def _event_log(self, recover: Recover, place: int) -> EventLog | None:
        """The log of events, whose appender has an identity of its own; None for an app without events."""
        session, node = self._session, self._session.node
        events = session.core.app.events
        if not events:
            return None
        appender = Appender(
            node.log,
            transactional_id=events_producer(session.deployment.app, place),
            identity=ProducerIdentity(*recover.producers[len(recover.producers) // 2 + place]),
            on_failure=self._refused,
        )
        lost = lambda error: session.broken(self, -1, f"an event cannot be appended: {error}")  # noqa: E731
        return EventLog(appender, events, lost, node.counters.events, node.counters.event_bytes)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of replies and events that are not in the log yet: while they are many, no epoch takes requests."""
        return self.replies.waiting_bytes + (0 if self.events is None else self.events.waiting_bytes)

    def when_durable(self, then: Callable[[], None]) -> None:
        """As `WorkerJournal.when_durable`."""
        events = self.events
        self.replies.when_durable(then if events is None else lambda: events.when_durable(then))

    def _refused(self, error: BaseException) -> None:
        self._session.node.counters.fenced += isinstance(error, Fenced)
        self._session.broken(self, -1, f"the log refuses appends: {error}")

    def end(self) -> None:
        """Ends the generation: drops all work that is under way for it."""
        if self._task is not None:
            self._task.cancel()
        self.appender.abort()
        self.replies.end()
        if self.events is not None:
            self.events.end()
        self.externals.stop()
        self.gate.stop()
        if self.feed is not None:
            self.feed.assign({})
            self._session.node.let_go(self.feed.stop())

    def give(self, event: Event) -> None:
        """Takes the result of work that was under way for the generation."""
        if isinstance(event, SlotPartsStored):
            self._session.node.counters.stored(event.parts, time.monotonic() - self._snapshot_since_s)
        self._session.give(event)

    # Its log -----------------------------------------------------------------------------------------------

    def record(self, effect: AppendEpochRecord | AppendVerdicts, durable: Callable[[], None]) -> None:
        """As `WorkerJournal.record`."""
        proved: Callable[[], None] | None = None
        if isinstance(effect, AppendEpochRecord):
            self.gate.epoch_began()
            proved = self._session.reads.recorded(effect.epoch)

        def appended(future: asyncio.Future[int]) -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is not None:
                self._session.broken(self, -1, f"an epoch record cannot be appended: {error}")
                return
            self._epochs_end = future.result()
            if proved is not None:
                proved()
            durable()

        topic = self._session.node.topics.epochs
        self.appender.append(topic, EPOCHS_PARTITION, [(None, effect.payload, [])]).add_done_callback(appended)

    def external(self, effect: AppendExternal, durable: Callable[[bytes | None], None]) -> None:
        """As `WorkerJournal.external`. A record that cannot be appended ends the generation; the next one appends it
        again.
        """
        outcome = effect.record.outcome

        def appended(future: asyncio.Future[int]) -> None:
            if not future.cancelled() and future.exception() is None:
                durable(outcome)

        topic, payload = self._session.node.topics.externals, encode_external(effect.record)
        self.appender.append(topic, effect.slot, [(None, payload, [])]).add_done_callback(appended)

    def emit(self, effect: EmitReplies) -> None:
        """As `WorkerJournal.emit`."""
        session, replies = self._session, effect.replies
        watch, counters = session.node.watch, session.node.counters
        started_s = watch.clock()
        self.replies.emit(replies)
        watch.replied(replies, watch.clock() - started_s)
        failed = [reply.error[0] for reply in replies if reply.error is not None]
        aborted = failed.count("aborted")
        counters.committed += len(replies) - len(failed)
        counters.aborted += aborted
        counters.rejected += len(failed) - aborted

    def emit_events(self, effect: EmitEvents) -> None:
        """As `WorkerJournal.emit_events`."""
        assert self.events is not None, "an app without events has emitted one"
        self.events.emit(effect.slot, effect.events)

    def mark_events(self, effect: MarkEvents) -> None:
        """As `WorkerJournal.mark_events`."""
        assert self.events is not None, "an app without events marks them"
        self.events.mark(self._session.core.slots, effect.epoch)

    def ends(self, wanted: StoreSlots) -> LogEnds:
        """As `WorkerJournal.ends`."""
        self._snapshot_since_s = time.monotonic()
        ends = dict(enumerate(self.replies.ends))
        slots = [each.slot for each in wanted.slots]
        events = {} if self.events is None else {slot: self.events.ends_of(slot) for slot in slots}
        return LogEnds(self._epochs_end, dict.fromkeys(slots, ends), events)

    # Its recovery ------------------------------------------------------------------------------------------

    def load(self, wanted: LoadState, loaded: Callable[[StateLoaded | StateUnusable], None]) -> None:
        """As `Recovery.load`. The load ends when peers, appender and feed are ready as well."""
        self._task = asyncio.get_running_loop().create_task(self._load(wanted, loaded), name=f"styx-load-{self.number}")
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

    async def _load(self, wanted: LoadState, told: Callable[[StateLoaded | StateUnusable], None]) -> None:
        session = self._session
        connecting = asyncio.create_task(self._connect())
        topics = session.node.topics
        # Leaders are looked up while the state loads, not at the first append, which would pause.
        starting = asyncio.create_task(self.appender.start([topics.epochs, topics.replies, topics.externals]))
        try:
            if self.events is not None:
                await self._prepare_events(self.events)
            loaded = await self._loaded(wanted)
            await asyncio.gather(connecting, starting, *([] if self.events is None else [self.events.start()]))
        finally:
            connecting.cancel()
            starting.cancel()
        self._epochs_end = loaded.epochs_end
        self.replies.ends[:] = loaded.reply_ends
        if self.events is not None:
            self.events.ends = dict(loaded.event_ends)
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
        told(answer)

    async def _prepare_events(self, events: EventLog) -> None:
        """Makes the topics that are missing, before anything is read or appended there."""
        session = self._session
        declared, n_slots = session.core.app.events, session.deployment.n_slots
        log, app = session.node.log, session.deployment.app
        keep = {name: event.keep for name, event in declared.items() if event.keep is not None}
        events.topics = await self._persistently(lambda: ensure_event_topics(log, app, declared, n_slots, keep))
        manifest = self._recover.manifest
        gone = {name for slot in (manifest.slots if manifest else ()) for name in slot.part.events} - declared.keys()
        for name in sorted(gone):
            _log.warning("the app has no event %r any more; its topic stays, and nothing is appended to it", name)

    def _fetch_pause_s(self) -> float:
        epoch_s = self._session.node.watch.last_epoch_s
        return max(self.gate.fetch_pause_s(), min(FETCH_PAUSE_SECONDS_MAX, epoch_s / FETCHES_PER_EPOCH))

    async def _connect(self) -> None:
        await self._session.peers.connect(self._session.core.id, self._recover.addresses)
        self.connected = True

    async def _loaded(self, wanted: LoadState) -> LoadedGeneration:
        node, n_slots, app = self._session.node, self._session.deployment.n_slots, self._session.core.app
        topics = {} if self.events is None else self.events.topics

        def run() -> LoadedGeneration:
            loaded = load(wanted, n_slots, node.reader(), node.store, topics)
            if isinstance(loaded.answer, StateLoaded):
                tables = {slot: part.state.at(NEWEST) for slot, part in loaded.answer.slots.items()}
                node.counters.operators_lost += tell_lost(app, tables, n_slots)
            return loaded

        return await self._persistently(lambda: node.background.run(run))

    async def _persistently(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` gives, once log and store can be reached."""
        failures = 0
        while True:
            try:
                return await work()
            except OSError as error:
                failures += 1
                if failures == 1:
                    _log.warning("loading generation %d waits for log or store: %s", self.number, error)
                await asyncio.sleep(LOAD_RETRY_SECONDS)
