"""A gateway's reads: which worker is asked, and that a read is asked again until it has an answer, or nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from styx.cluster.gateway.reads import ClusterReads
from styx.cluster.wire import GATEWAY, WORKER, Owners, encode, reads_hears
from styx.errors import ConfigurationError, RequestRejected
from styx.messages import ReplyRecord
from styx.model.freshness import AT, LATEST, SESSION, STRICT, Freshness
from styx.model.limits import Limits
from styx.model.request import Placed
from styx.protocol.reads import PartEnded, PartFailed, PartReturned, ReadAnswered, ReadAsked, ReadDropped
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Connection, Hello, Listener, Security, listen

pytestmark = pytest.mark.anyio

SECURITY = Security(b"0123456789abcdef", "c")
UNAVAILABLE = PartFailed("unavailable", "NotSent", "ask again")
DONE = PartReturned(b"\x07", 1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class FakeWorker:
    """Notes what it is asked; `ends` are its answers, and without one it is silent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[ReadAsked] = []
        self.dropped: list[int] = []
        self.ends: list[PartEnded] = []
        self.connections: list[Connection] = []
        self.listener: Listener

    async def start(self) -> None:
        hello = Hello(cluster="c", role=WORKER, name=self.name, incarnation=self.name)
        self.listener = await listen("127.0.0.1", 0, SECURITY, hello, self._accept)

    @property
    def address(self) -> str:
        return f"{self.listener.address}/{self.name}"

    def _accept(self, connection: Connection) -> None:
        assert connection.peer.role == GATEWAY
        self.connections.append(connection)
        connection.start(self._hear, lambda *_: None)

    def _hear(self, connection: Connection, payloads: list[bytes]) -> None:
        for payload in payloads:
            message = reads_hears.decode(payload)
            if isinstance(message, ReadDropped):
                self.dropped.append(message.id)
                continue
            assert isinstance(message, ReadAsked)
            self.asked.append(message)
            if self.ends:
                connection.send(encode(ReadAnswered(message.id, 17, self.ends.pop(0))))


class Deployment:
    """Two workers, of which one owns slot 0 and the other slot 1, and a gateway's reads."""

    def __init__(self) -> None:
        self.workers = [FakeWorker("w0"), FakeWorker("w1")]
        hello = Hello(cluster="c", role=GATEWAY, name="g", incarnation="g")
        self.limits = Limits(in_flight_max=2)
        self.reads = ClusterReads(SECURITY, hello, lambda: self.limits)

    def owners(self, generation: int = 5, swapped: bool = False) -> None:
        owners = {0: 1, 1: 0} if swapped else {0: 0, 1: 1}
        self.reads.owners(Owners(generation, owners, {n: each.address for n, each in enumerate(self.workers)}))

    def read(self, slot: int = 0, freshness: Freshness = Freshness()) -> asyncio.Task[ReplyRecord]:  # noqa: B008
        return asyncio.ensure_future(self.reads.read(Placed("r", slot, b"request", False), freshness))


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    made = Deployment()
    for worker in made.workers:
        await worker.start()
    yield made
    made.reads.close()
    for worker in made.workers:
        await worker.listener.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - sockets are no event source
            await asyncio.sleep(0.002)


async def test_the_owner_of_the_slot_is_asked(deployment: Deployment) -> None:
    deployment.owners()
    deployment.workers[1].ends = [DONE, PartFailed("aborted", "KeyError", "'x'")]
    record = await deployment.read(1)
    assert (record.epoch, record.phase, record.result, record.error) == (17, 4, b"\x07", None)
    record = await deployment.read(1)
    assert record.error == ("aborted", "KeyError", "'x'")
    assert [each.request for each in deployment.workers[1].asked] == [b"request"] * 2
    assert not deployment.workers[0].asked
    assert len(deployment.workers[1].connections) == 1
    assert deployment.reads.under_way == 0


@pytest.mark.parametrize(
    ("freshness", "wanted"),
    [
        (Freshness(LATEST, 9), (-1, None, False, None)),
        (Freshness(LATEST, 9, None, 0.5), (-1, None, False, 0.5)),
        (Freshness(SESSION, 9), (9, None, False, None)),
        (Freshness(STRICT, 9), (-1, None, True, None)),
        (Freshness(AT, -1, 4), (-1, 4, False, None)),
    ],
)
async def test_what_a_freshness_asks_for(
    deployment: Deployment, freshness: Freshness, wanted: tuple[object, ...]
) -> None:
    deployment.owners()
    deployment.workers[0].ends = [DONE]
    await deployment.read(0, freshness)
    (asked,) = deployment.workers[0].asked
    assert (asked.at_least, asked.at, asked.fenced, asked.staleness_s) == wanted
    assert asked.generation == 5


async def test_before_the_owners_are_known_a_read_waits(deployment: Deployment) -> None:
    reading = deployment.read()
    await asyncio.sleep(0.01)
    assert not reading.done()
    deployment.workers[0].ends = [DONE]
    deployment.owners()
    assert (await reading).result == b"\x07"


async def test_what_can_be_asked_again_is(deployment: Deployment) -> None:
    deployment.owners()
    deployment.workers[0].ends = [UNAVAILABLE, UNAVAILABLE, DONE]
    assert (await deployment.read()).result == b"\x07"
    assert len({each.id for each in deployment.workers[0].asked}) == 3


async def test_another_owner_is_asked_when_the_slot_moves(deployment: Deployment) -> None:
    deployment.owners()
    deployment.workers[0].ends = [UNAVAILABLE] * 100
    reading = deployment.read()
    await until(lambda: bool(deployment.workers[0].asked))
    deployment.workers[1].ends = [DONE]
    deployment.owners(6, swapped=True)
    assert (await reading).result == b"\x07"
    assert deployment.workers[1].asked[0].generation == 6


async def test_a_lost_worker_is_asked_again(deployment: Deployment) -> None:
    deployment.owners()
    reading = deployment.read()
    await until(lambda: bool(deployment.workers[0].asked))
    deployment.workers[0].ends = [DONE]
    deployment.workers[0].connections[0].abort("it dies")
    assert (await reading).result == b"\x07"
    assert len(deployment.workers[0].connections) == 2


async def test_a_silent_worker_that_leaves_is_not_waited_for(deployment: Deployment) -> None:
    deployment.owners()
    reading = deployment.read()
    await until(lambda: bool(deployment.workers[0].asked))
    deployment.workers[1].ends = [DONE]
    deployment.reads.owners(Owners(6, {0: 1, 1: 1}, {1: deployment.workers[1].address}))
    assert (await reading).result == b"\x07"


async def test_another_process_at_the_address_is_not_asked(deployment: Deployment) -> None:
    stranger = deployment.workers[1].listener.address
    deployment.reads.owners(Owners(5, {0: 0, 1: 0}, {0: f"{stranger}/w0"}))
    reading = deployment.read()
    await until(lambda: bool(deployment.workers[1].connections))
    assert not deployment.workers[1].asked
    deployment.workers[0].ends = [DONE]
    deployment.owners()
    # What was dialled is lost by then, and dialled anew.
    assert (await reading).result == b"\x07"
    assert not deployment.workers[1].asked


async def test_a_certificate_that_is_being_replaced(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def without_a_file(self: Security) -> None:
        tried.append(self)
        raise ConfigurationError("the certificate cannot be read")

    deployment.owners()
    deployment.workers[0].ends = [DONE]
    with monkeypatch.context() as patched:
        patched.setattr(Security, "dialer_context", without_a_file)
        read = deployment.read()
        await until(lambda: len(tried) > 1)
    assert (await read).result == b"\x07"


async def test_a_read_that_nobody_waits_for_is_dropped_at_the_worker(deployment: Deployment) -> None:
    deployment.owners()
    reading = deployment.read()
    await until(lambda: bool(deployment.workers[0].asked))
    reading.cancel()
    await asyncio.wait([reading])
    await until(lambda: deployment.workers[0].dropped == [deployment.workers[0].asked[0].id])
    assert deployment.reads.under_way == 0


async def test_too_many_reads(deployment: Deployment) -> None:
    waiting = [deployment.read(), deployment.read()]
    await asyncio.sleep(0)
    with pytest.raises(RequestRejected, match="overloaded"):
        deployment.read()
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    assert deployment.reads.under_way == 0
