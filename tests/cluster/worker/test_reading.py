"""A worker's reads at their sockets: what a gateway may say, and how old a state is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from styx.cluster.wire import GATEWAY, WORKER, answers_hears, encode
from styx.cluster.worker import reading
from styx.cluster.worker.metrics import WorkerCounters
from styx.cluster.worker.reading import WorkerReads
from styx.messages import Request, encode_request
from styx.model.changes import FROM_NOW
from styx.protocol.changes import ChangesGiven, FollowAsked, FollowLeft, FollowOver, FollowTaken
from styx.protocol.reads import PartReturned, ReadAnswered, ReadAsked, ReadDropped
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Connection, Hello, Listener, Security, dial, listen
from styx.worker.events import EpochWanted
from tests.worker.test_read_exchange import KEYS, Pair, written

pytestmark = pytest.mark.anyio

SECURITY = Security(b"0123456789abcdef", "c")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Serving:
    """The reads of a worker behind a socket, with a gateway's connection to it."""

    def __init__(self) -> None:
        self.pair = Pair()
        self.wanted: list[EpochWanted] = []
        notes = SimpleNamespace(empty=True)
        reports, peers = cast(Any, SimpleNamespace(notes=notes)), cast(Any, SimpleNamespace(send=lambda *_: None))
        self.counters = WorkerCounters()
        worker = self.pair.workers[0]
        self.reads = WorkerReads(worker, peers, reports, self.counters, self.wanted.append, self._wake, 30.0)
        self.answers: list[ReadAnswered] = []
        self.followed: list[ChangesGiven | FollowOver] = []
        self.listener: Listener
        self.gateway: Connection

    def _wake(self) -> None:
        while self.reads.run():
            pass

    async def start(self) -> None:
        hello = Hello(cluster="c", role=WORKER, name="w", incarnation="w")
        self.listener = await listen("127.0.0.1", 0, SECURITY, hello, self.reads.accept)
        self.gateway = await self.connect()

    async def connect(self) -> Connection:
        gateway = Hello(cluster="c", role=GATEWAY, name="g", incarnation="g")
        connection = await dial(self.listener.address, SECURITY, gateway, PATIENCE_SECONDS)
        connection.start(self._hear, lambda *_: None)
        return connection

    def _hear(self, _: Connection, payloads: list[bytes]) -> None:
        for payload in payloads:
            answer = answers_hears.decode(payload)
            if isinstance(answer, ReadAnswered):
                self.answers.append(answer)
            else:
                self.followed.append(answer)

    def ask(self, its_id: int, **wanted: Any) -> None:
        request = encode_request(Request("", "account", KEYS[0], "value", msgspec.msgpack.encode([])))
        self.gateway.send(encode(ReadAsked(its_id, 1, request, **wanted)))


@pytest.fixture
async def serving() -> AsyncIterator[Serving]:
    made = Serving()
    await made.start()
    yield made
    made.reads.close()
    await made.listener.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - sockets are no event source
            await asyncio.sleep(0.002)


async def test_an_answer(serving: Serving) -> None:
    written(serving.pair, 0, 3, 4)
    serving.ask(8)
    await until(lambda: bool(serving.answers))
    (answer,) = serving.answers
    assert (answer.id, answer.epoch) == (8, 0)
    assert isinstance(answer.end, PartReturned)
    assert msgspec.msgpack.decode(answer.end.value or b"") == 3


async def test_nothing_is_left_of_a_gateway_that_is_gone(serving: Serving) -> None:
    serving.ask(1, at_least=9)
    serving.ask(2, at_least=9)
    await until(lambda: serving.reads.exchange.under_way == 2)
    serving.gateway.send(encode(ReadDropped(2)))
    await until(lambda: serving.reads.exchange.under_way == 1)
    serving.gateway.abort()
    await until(lambda: serving.reads.exchange.under_way == 0)
    assert not serving.answers


async def test_changes_are_followed_over_the_same_connection(serving: Serving) -> None:
    serving.gateway.send(encode(FollowAsked(5, 1, "account", None, FROM_NOW)))
    await until(lambda: bool(serving.followed))
    assert serving.followed == [ChangesGiven(5, -1, [])]
    written(serving.pair, 0, 3, 4)
    serving.reads.run()
    await until(lambda: len(serving.followed) == 2)
    given = serving.followed[1]
    assert isinstance(given, ChangesGiven)
    assert (given.id, given.through) == (5, 0)
    assert 0 <= time.time() - given.closed_us / 1e6 < PATIENCE_SECONDS
    [[table]] = [epoch.tables for epoch in given.epochs]
    assert (table.slot, table.name, table.keys) == (0, "account", [KEYS[0]])
    serving.gateway.send(encode(FollowTaken(5, 1)))
    serving.gateway.send(encode(FollowLeft(5)))
    await until(lambda: not len(serving.reads.following.followers))


async def test_a_follower_of_another_generation_asks_again(serving: Serving) -> None:
    for generation in (0, 2):
        serving.gateway.send(encode(FollowAsked(generation, generation, "account", None, FROM_NOW)))
    await until(lambda: len(serving.followed) == 2)
    assert {each.code for each in serving.followed if isinstance(each, FollowOver)} == {"unavailable"}


async def test_no_follower_is_left_of_a_gateway_that_is_gone(serving: Serving) -> None:
    serving.gateway.send(encode(FollowAsked(5, 1, "account", None, FROM_NOW)))
    await until(lambda: len(serving.reads.following.followers) == 1)
    serving.gateway.abort()
    await until(lambda: not len(serving.reads.following.followers))


async def test_a_gateway_says_nothing_but_reads(serving: Serving) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    serving.gateway.send(encode(Hello(cluster="c", role=GATEWAY, name="g", incarnation="g")))
    await until(lambda: serving.gateway.closed)
    assert [type(each["exception"]) for each in reported] == [msgspec.ValidationError]


async def test_who_does_not_read_its_answers_is_cut_off(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "UNSENT_BYTES_MAX", -1)
    written(serving.pair, 0, 3, 4)
    serving.ask(1)
    await until(lambda: serving.gateway.closed)
    assert not serving.answers


async def test_a_strict_read_wants_an_epoch(serving: Serving) -> None:
    serving.ask(1, fenced=True)
    await until(lambda: bool(serving.wanted))
    assert serving.wanted == [EpochWanted(1, 0)]
    assert serving.counters.reads == {"latest": 0, "session": 0, "strict": 1, "at": 0}


async def test_how_old_a_state_may_be(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: now_s))
    written(serving.pair, 0, 3, 4)
    durable = serving.reads.recorded(1)
    now_s = 103.0
    serving.ask(1, staleness_s=5.0)
    await until(lambda: serving.wanted == [EpochWanted(1, 1)])  # that record was not known to be durable
    assert not serving.answers
    durable()
    serving.ask(2, staleness_s=5.0)
    await until(lambda: bool(serving.answers))
    assert [each.id for each in serving.answers] == [2]
    serving.ask(3, staleness_s=2.9)
    await until(lambda: serving.reads.exchange.under_way == 2)
    assert len(serving.answers) == 1
