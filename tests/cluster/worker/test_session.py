"""A registration's own orders: what of an older generation must not happen once a newer one has been announced."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

import pytest

from styx.cluster.wire import Code, Deployment, Leave, Released, StandBy, Welcome, coordinator_hears, encode
from styx.cluster.worker import session as session_module
from styx.cluster.worker.node import Node, OwnApp
from styx.cluster.worker.session import WorkerSession
from styx.host.background import Background
from styx.kafka.address import KafkaAddress
from styx.messages import ReplyRecord
from styx.model.limits import Limits
from styx.protocol.messages import Commit, Join, Recover
from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.store import MemoryStore
from styx.transport import Connection, Security
from styx.worker.events import Effect, EmitReplies, Event, LoadedSlot, StateLoaded, Step
from styx.worker.worker import Worker
from tests.protocol.scripted_app import app

pytestmark = pytest.mark.anyio

ME = 7


class FakeGeneration:
    """Notes the replies that it is given to append."""

    def __init__(self, session: WorkerSession, recover: Recover) -> None:
        self.number = recover.generation
        self.feed = None
        self.connected = True
        self.ended = False
        self.emitted: list[ReplyRecord] = []
        self.replies = self
        self.gate = self
        self.externals = self
        self.waiting_bytes = 0
        self.opened = 0

    def open(self) -> None:
        self.opened += 1

    def emit(self, effect: EmitReplies) -> None:
        self.emitted += effect.replies

    def load(self, *_: object) -> None: ...

    emit_events = mark_events = event_differs = load
    differs = not_resumed = skipped = record = run = give = when_durable = ends = load

    def end(self) -> None:
        self.ended = True


class WatchedTable(dict[Any, bytes]):
    """One whose end can be seen."""


class FakeLink:
    """The connection to the coordinator: what was said."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def send(self, payload: bytes) -> None:
        self.said.append(coordinator_hears.decode(payload))

    def abort(self, reason: str) -> None: ...


@pytest.fixture
def generations(monkeypatch: pytest.MonkeyPatch) -> list[FakeGeneration]:
    """The generations that sessions make, in order; each commit gives a reply."""
    made: list[FakeGeneration] = []

    def make(session: WorkerSession, recover: Recover) -> FakeGeneration:
        made.append(FakeGeneration(session, recover))
        return made[-1]

    def step(self: Worker, event: Event) -> list[Effect]:
        if isinstance(getattr(event, "message", None), Commit):
            return [EmitReplies(0, [ReplyRecord("r1", 1, 1, 0, 1, b"\xc0")])]
        return real_step(self, event)

    real_step = Worker.step
    monkeypatch.setattr(session_module, "Generation", make)
    monkeypatch.setattr(Worker, "step", step)
    monkeypatch.setattr(Node, "app_of", lambda *_: app)
    return made


@pytest.fixture
def no_collector() -> Iterator[None]:
    """As good as a worker's process has it."""
    gc.disable()
    yield
    gc.enable()


def new_session() -> WorkerSession:
    node = Node(
        "w",
        Security(b"x" * 32, "c"),
        KafkaAddress("none:1"),
        MemoryStore(),
        cast(Background, SimpleNamespace(submit=None)),
        OwnApp(app, ""),
    )
    welcome = Welcome(ME, Deployment(app.name, 1, 1, Limits()), heartbeat_s=60.0)
    session = WorkerSession(node, cast(Connection, FakeLink()), welcome, _never)
    session.hear(encode(Code(1, b"")))
    return session


def _never(reason: str, error: BaseException | None) -> None:
    raise AssertionError(reason) from error


def recover(session: WorkerSession, generation: int) -> None:
    session.hear(encode(Recover(generation, {0: ME}, None, {ME: "nowhere/1"}, 1)))


async def load_watched(session: WorkerSession) -> ref[WatchedTable]:
    """Gives generation 1 its state: a table, to which this is a reference that does not keep it."""
    table = WatchedTable({"k": b"v"})
    slot = LoadedSlot(SlotState({"op": Table(table, -1)}), 0, [])
    session._passes.to_worker(StateLoaded(1, -1, 0, {0: slot}, [], {}))
    await one_pass()
    return ref(table)


async def one_pass() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_replies_of_an_older_generation_never_go_through_a_newer_one_s_appender(
    generations: list[FakeGeneration],
) -> None:
    """The barrier that gives them, and the next generation, come in one read: what came first happens first, to what
    its own generation has, and the fence decides.
    """
    session = new_session()
    recover(session, 1)
    await one_pass()
    session.hear(encode(Commit(1, 0, [], False)))
    recover(session, 2)
    await one_pass()
    assert [(each.number, each.ended, len(each.emitted)) for each in generations] == [(1, True, 1), (2, False, 0)]
    assert session.core.generation == 2
    session.close()


async def test_replies_go_through_their_own_generation_s_appender(generations: list[FakeGeneration]) -> None:
    session = new_session()
    recover(session, 1)
    session.hear(encode(Commit(1, 0, [], False)))
    await one_pass()
    assert [len(each.emitted) for each in generations] == [1]
    session.close()


async def test_an_announcement_of_an_older_generation_changes_nothing(generations: list[FakeGeneration]) -> None:
    session = new_session()
    recover(session, 2)
    await one_pass()
    recover(session, 1)
    await one_pass()
    assert [each.number for each in generations] == [2]
    session.close()


async def test_what_waits_is_handed_on_before_a_worker_joins_an_epoch(generations: list[FakeGeneration]) -> None:
    session = new_session()
    recover(session, 1)
    await one_pass()
    session.hear(encode(Join(1, 0)))
    assert generations[0].opened == 1
    session.close()


async def test_state_is_freed_with_its_registration(generations: list[FakeGeneration], no_collector: None) -> None:
    """The next registration loads it anew, and there must not be two of it."""
    session = new_session()
    recover(session, 1)
    await one_pass()
    freed = await load_watched(session)
    assert session.core.holdings() == (1, ["op"])
    assert freed() is not None
    session.close()
    assert freed() is None


async def test_state_is_freed_with_its_generation(generations: list[FakeGeneration], no_collector: None) -> None:
    session = new_session()
    recover(session, 1)
    await one_pass()
    freed = await load_watched(session)
    assert freed() is not None
    recover(session, 2)
    await one_pass()
    assert freed() is None
    session.close()


def said(session: WorkerSession) -> list[object]:
    return cast(FakeLink, session._link).said


async def test_it_is_ready_when_it_takes_part_with_its_slots_or_is_not_needed(
    generations: list[FakeGeneration],
) -> None:
    session = new_session()
    assert session.unready() == "it waits for its share of the slots"
    session.hear(encode(StandBy(True)))
    assert session.unready() is None
    session.hear(encode(StandBy(False)))
    assert session.unready() == "it waits for its share of the slots"
    recover(session, 1)
    await one_pass()
    assert session.unready() == "its slots are being loaded"
    session.core._between = Step.IDLE
    assert session.unready() is None
    session.hear(encode(Released()))
    assert session.unready() == "it leaves: its slots move to other workers"
    session.close()


async def test_one_that_stands_by_serves_nothing_of_what_it_had(generations: list[FakeGeneration]) -> None:
    """Others have its slots: its metrics must count none of what stands there, nor how long it has waited."""
    session = new_session()
    assert session.serving is None
    for number, message in enumerate((StandBy(True), StandBy(False)), 1):
        recover(session, number)
        await one_pass()
        assert session.serving is session.core
        session.hear(encode(message))
        assert session.serving is None
    session.close()


async def test_one_that_was_let_go_says_so_wherever_it_registers_anew(generations: list[FakeGeneration]) -> None:
    session = new_session()
    session.hear(encode(Released()))
    assert session.node.departure.released.is_set()
    welcome = Welcome(ME, session.deployment, heartbeat_s=60.0)
    anew = WorkerSession(session.node, cast(Connection, FakeLink()), welcome, _never)
    assert said(anew) == [Leave()]
    assert Leave() not in said(session)
    for each in (session, anew):
        each.close()
