"""Processes of `styx ingest` in a simulation, the topics that they read, and what strikes both.

A process is the feeds that run in earnest, on a loop of virtual time. Its requests are on their way for a while, and
arrive in the log although it is dead by then; replies may never reach it. Topics are written, truncated, made anew and
grown as those of somebody else are. What must be true at the end is in `proof.simulation.landed`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any, Final, NoReturn

from proof.landing_steps import CALLING, EMITTING, TOPICS, random_record
from proof.simulation.clients import Clients
from proof.simulation.foreign_topic import ForeignSource, ForeignTopic
from proof.simulation.plan import SimulationPlan
from proof.simulation.virtual_loop import VirtualLoop
from proof.simulation.world import World
from styx.cluster.ingest.feeds import Feeds, ingests_of
from styx.errors import OutcomeUnknown
from styx.messages import ReplyRecord, decode_request
from styx.model.app import App
from styx.model.delivery import delivery_name
from styx.model.ingest import Ingest
from styx.model.operator import Operator
from styx.model.request import AppRouter, Placed, RequestMaker

PACE: Final = 4.0
"""So many times as fast are the clocks of ingests, which pause for seconds where nothing is to be done."""
FOLLOW_SECONDS: Final = 0.5
"""How often a process looks for another version, by its own clock."""
SEND_S: Final = 0.002
"""How long a request is on its way, as a rule."""
LATE_S: Final = 1.0
"""And how long at most, if it is one of these."""
_LATE: Final = 0.05
_REPLIES_LOST: Final = 0.05
_BATCH: Final = 4
_OWN: Final = "ingest "
"""How the ids of requests of a process begin."""


@contextmanager
def unheard() -> Iterator[None]:
    """In the block, feeds write nothing to the log of this process: they are hindered on purpose."""
    log = logging.getLogger("styx.ingest")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


class _Maker:
    """A `RequestMaker` whose ids depend on the seed alone."""

    def __init__(self, app: App, world: World, ids: Callable[[], str]) -> None:
        self._maker = RequestMaker(AppRouter(app, world.plan.slots), world.limits.request_bytes_max)
        self._ids = ids

    def make(self, operator: Operator, key: Any, function: str, params: bytes) -> Placed:
        return self._maker.make(operator, key, function, params, request_id=self._ids())


class IngestProcess:
    """One process, and what its feeds take for an engine. It knows the version that it has looked at last."""

    unavailable_reason = None
    broken_reason = None

    def __init__(self, ingests: Ingests, number: int) -> None:
        self.limits = ingests.world.limits
        self.n_slots = ingests.world.plan.slots
        self.app = ingests.world.newest_app()
        self.number = number
        self.loop = VirtualLoop(ingests.world.time, PACE)  # type: ignore[abstract]  # nobody asks it for I/O
        self.feeds = Feeds(self, self._source)  # type: ignore[arg-type]  # it has what feeds ask of an engine
        self._ingests = ingests
        self._waiting: dict[str, asyncio.Future[ReplyRecord]] = {}
        self._requests = count()
        self._running = self.loop.begin(self._run())

    @property
    def in_flight(self) -> int:
        """Requests without a reply."""
        return len(self._waiting)

    @property
    def maker(self) -> _Maker:
        """Of the version that it knows."""
        return _Maker(self.app, self._ingests.world, lambda: f"{_OWN}{self.number} {next(self._requests)}")

    def submit_request(self, request: Placed) -> asyncio.Future[ReplyRecord]:
        """As that of an engine."""
        answer: asyncio.Future[ReplyRecord] = self.loop.create_future()
        self._waiting[request.request_id] = answer
        self._ingests.sent(request)
        return answer

    def replied(self, reply: ReplyRecord, lost: bool) -> bool:
        """A reply has come; whether it is this process that has waited for it. `lost`: nobody will know what it was."""
        answer = self._waiting.pop(reply.request_id, None)
        if answer is None:
            return False
        if not answer.done():
            if lost:
                answer.set_exception(OutcomeUnknown("the connection was lost"))
            else:
                answer.set_result(reply)
        return True

    def kill(self) -> None:
        """It ends without a word."""
        self.loop.end(self._running)

    def check(self) -> None:
        """Raises what has ended it, other than a kill."""
        if self._running.done() and not self._running.cancelled():
            self._running.result()

    async def _run(self) -> NoReturn:
        try:
            while True:
                self.app = self._ingests.world.newest_app()
                await self.feeds.follow(self.app)
                self.feeds.check()
                await asyncio.sleep(FOLLOW_SECONDS)
        finally:
            await self.feeds.close()

    def _source(self, ingest: Ingest) -> ForeignSource:
        return ForeignSource(self._ingests.topics[ingest.topic])


class Ingests:
    """`topics` by name; `written` counts records. No record is written any more at `end_s`."""

    def __init__(self, world: World, plan: SimulationPlan, clients: Clients) -> None:
        self.world = world
        self.topics: dict[str, ForeignTopic] = {}
        self.written = 0
        self.end_s = 0.0
        self._clients = clients
        self._rng = Random(f"ingests {plan.seed}")
        self._numbers = count(1)
        self._processes: list[IngestProcess] = []
        self._begun = count(1)
        self._rests_until_s = 0.0
        self._others_answered = 0
        self._positions: set[tuple[str, int, str, int]] = set()
        self._open = plan.ingests > 0
        if not self._open:
            return
        world.log.listener = self._replied
        for name in TOPICS:
            self.topics[name] = ForeignTopic(name, self._rng.choice([1, 1, 2, 3]))
        self._plan_records(plan)

    def _plan_records(self, plan: SimulationPlan) -> None:
        rng = Random(f"foreign records {plan.seed}")
        idle_from_s = min((f.at_s for f in plan.faults if f.kind == "idle hour"), default=float("inf"))
        for _ in range(plan.requests):
            if rng.random() >= plan.ingests:
                continue
            at_s = rng.random() * plan.duration_s
            at_s += plan.idle_s if at_s > idle_from_s else 0.0
            name = rng.choice(TOPICS[:2] if not plan.emits else TOPICS)
            self.end_s = max(self.end_s, at_s)
            self.world.time.after(at_s, self._write, name, rng.randrange(3), rng.randint(1, _BATCH))

    def _write(self, name: str, partition: int, records: int) -> None:
        topic = self.topics[name]
        if not topic.there:
            return
        for _ in range(records):
            kind, value = random_record(self._rng, EMITTING if name == TOPICS[2] else CALLING)
            topic.write(partition, next(self._numbers), kind, value)
            self.written += 1
        if self._rng.random() < 0.3:
            topic.mark(partition)

    # Processes ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """One lives and works, and all topics are there, unless this is over, or the plan has no ingests."""
        for topic in self.topics.values():
            topic.away = False
            if not topic.there:
                topic.make_anew()
        for each in self._processes:
            each.loop.stands_until_s = self._rests_until_s
        if self._open and not self._processes:
            self.start_another()

    def start_another(self) -> None:
        """One more process."""
        if self._open:
            process = IngestProcess(self, next(self._begun))
            process.loop.stands_until_s = self._rests_until_s
            self._processes.append(process)

    def kill(self, which: int | None = None) -> None:
        """Kills one process, or all."""
        killed = self._processes[:] if which is None else self._processes[which : which + 1]
        for each in killed:
            self._processes.remove(each)
            each.kill()

    def rest(self, until_s: float) -> None:
        """Nobody reads until then."""
        self._rests_until_s = until_s
        for each in self._processes:
            each.loop.stands_until_s = until_s

    def freeze(self, until_s: float) -> None:
        """The oldest process stands still."""
        for each in self._processes[:1]:
            each.loop.stands_until_s = max(until_s, self._rests_until_s)

    def close(self) -> None:
        """Nothing is read any more."""
        self._open = False
        self.kill()

    def look(self) -> None:
        """Raises what has ended a process."""
        for each in self._processes:
            each.check()

    # Requests and replies ----------------------------------------------------------------------------------

    def sent(self, request: Placed) -> None:
        """A request of a process, which arrives whatever becomes of that one."""
        delay_s = self._rng.random() * (LATE_S if self._rng.random() < _LATE else SEND_S)
        self.world.time.after(delay_s, self._clients.send, decode_request(request.payload))

    def _replied(self, reply: ReplyRecord) -> None:
        self._others_answered += not reply.request_id.startswith(_OWN) and delivery_name(reply.request_id) is None
        lost = self._rng.random() < _REPLIES_LOST
        for each in self._processes:
            if each.replied(reply, lost):
                return

    def done(self) -> bool:
        """Whether all records of the topics that the newest version reads are taken, as a process has seen."""
        if not self._open:
            return True
        wanted = ingests_of(self.world.newest_app())
        return any(self._all_taken(each, wanted) for each in self._processes)

    def progress(self) -> int:
        """Grows with each position that a process has come to, and with each reply to somebody else, whom it may wait
        for; not with replies to the processes, which may ask for the same again and again.
        """
        for process in self._processes:
            for name, feed in process.feeds.by_name.items():
                for number, lane in feed.lanes.items():
                    self._positions.add((name, number, lane.position.topic_id, lane.position.next))
        return self._others_answered + len(self._positions)

    def _all_taken(self, process: IngestProcess, wanted: dict[str, Ingest]) -> bool:
        feeds = process.feeds.by_name
        if {name: each.ingest.topic for name, each in feeds.items()} != {n: each.topic for n, each in wanted.items()}:
            return False
        for feed in feeds.values():
            topic = self.topics[feed.ingest.topic]
            if not feed.there or len(feed.lanes) != len(topic.partitions):
                return False
            for number, lane in feed.lanes.items():
                position = lane.position
                if (position.topic_id, position.next) != (topic.topic_id, topic.partitions[number].end):
                    return False
        return True
