"""`styx.connect("kafka://…")`: as any other client, through a real broker to a worker without state."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import styx
from styx import App, ConfigurationError, Operator, RequestRejected, TransactionAborted
from styx.client.base import Client
from styx.client.kafka.client import KafkaClient
from styx.kafka.address import KafkaAddress
from styx.kafka.appender import Appender
from styx.kafka.topics import ROUTING_KEY, topics_of
from styx.messages import Reply
from styx.schema.description import describe, routing_table
from tests.client.kafka.fake_worker import FakeWorker
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

shelf = Operator("shelf")
numbered = Operator("numbered", key_type=int)
grouped = Operator("grouped", key_type=(int, str), partition_key=lambda key: key[0])

CLIENTS = 50


@pytest.fixture
def url(kafka: RealKafka) -> str:
    return f"kafka://{kafka.bootstrap}"


@pytest.fixture
def app(worker: FakeWorker) -> App:
    return App(worker.app, operators=[shelf, numbered, grouped])


async def publish(address: KafkaAddress, app: App, *others: bytes) -> None:
    """The routing table, as a coordinator publishes it, and other records with its key behind it."""
    values = routing_table(describe(app)).encode(), *others
    failures: list[BaseException] = []
    appender = Appender(address, on_failure=failures.append)
    await appender.start()
    await appender.append(topics_of(app.name).directory, 0, [(ROUTING_KEY, value, []) for value in values])
    await appender.stop()
    assert not failures


@pytest.fixture
async def published(address: KafkaAddress, app: App) -> None:
    await publish(address, app)


@pytest.fixture(params=["app", "name"])
async def client(request: pytest.FixtureRequest, url: str, app: App, published: None) -> AsyncIterator[Client]:
    async with styx.connect(url, app if request.param == "app" else app.name) as client:
        yield client


async def test_calls(client: Client) -> None:
    assert await client.call("shelf", "key", "echo", 1, ["2"]) == [1, ["2"]]
    assert await client.call(shelf, "key", "echo") == []
    with pytest.raises(TransactionAborted, match="OutOfStock: no more"):
        await client.call("shelf", "key", "fail")
    reply = await client.submit("numbered", 7, "slot", idempotency_key="once")
    assert reply.result == numbered.partition_of(7, 4)
    assert await client.call(grouped, (1, "x"), "slot") == grouped.partition_of((1, "x"), 4)


async def test_calls_for_a_receiver(client: Client) -> None:
    assert isinstance(client, KafkaClient)
    loop = asyncio.get_running_loop()
    answered: list[asyncio.Future[Reply]] = [loop.create_future() for _ in range(3)]
    client.submit_for(answered[0], shelf, "key", "echo", 1)
    client.submit_for(answered[1], "shelf", 1, "echo")
    client.submit_for(answered[2], "shelf", "key", "silent", timeout=0.05)
    assert answered[1].done()  # it could not be sent
    assert (await answered[0]).result == [1]
    error = (await answered[1]).error
    assert error is not None
    assert error.code == "bad_arguments"
    with pytest.raises(TimeoutError):
        await answered[2]
    with pytest.raises(ValueError, match="timeout"):
        client.submit_for(answered[0], "shelf", "key", "echo", timeout=0)


async def test_refused_before_anything_is_sent(client: Client, worker: FakeWorker) -> None:
    refused: list[tuple[Operator | str, str | int, tuple[object, ...], str]] = [
        ("shelf", 1, (), "bad_arguments"),
        (shelf, 1, (), "bad_arguments"),
        ("numbered", "1", (), "bad_arguments"),
        ("shelf", "key", (object(),), "bad_arguments"),
        ("shelf", "key", ("x" * 2**20,), "too_large"),
    ]
    for operator, key, arguments, code in refused:
        with pytest.raises(RequestRejected) as caught:
            await client.call(operator, key, "echo", *arguments)
        assert caught.value.code == code
    with pytest.raises(ValueError, match="timeout"):
        client.submit("shelf", "key", "echo", timeout=0)
    assert not worker.runs


async def test_timeouts(client: Client) -> None:
    with pytest.raises(TimeoutError, match="may still commit"):
        await client.call("shelf", "key", "silent", timeout=0.05)


async def test_loads(client: Client) -> None:
    report = await client.load("numbered", [(number, number) for number in range(1000)])
    assert (report.loaded, report.chunks) == (1000, 4)
    assert (await client.load(grouped, [((1, "x"), 1), ((1, "y"), 1)])).chunks == 1


async def test_many_clients_at_once(url: str, app: App, worker: FakeWorker) -> None:
    async def work(number: int) -> list[int]:
        async with KafkaClient(url, app) as client:
            return [(await client.call("shelf", f"{number}", "echo", number))[0] for _ in range(10)]

    assert await asyncio.gather(*map(work, range(CLIENTS))) == [[number] * 10 for number in range(CLIENTS)]
    assert len(worker.runs) == CLIENTS * 10
    assert set(worker.runs.values()) == {1}


async def test_blocking(url: str, app: App) -> None:
    def work() -> None:
        with styx.connect_sync(url, app) as client:
            assert client.call("shelf", "key", "echo", 1) == [1]

    await asyncio.to_thread(work)


async def test_not_deployed(url: str, app: App) -> None:
    with pytest.raises(ConfigurationError, match="is it deployed"):
        await styx.connect(url, app.name).__aenter__()
    with pytest.raises(ConnectionError, match="cannot be reached"):
        await styx.connect("kafka://127.0.0.1:1", app).__aenter__()


async def test_the_newest_table_counts(address: KafkaAddress, url: str, app: App, published: None) -> None:
    few = Operator("few", n_partitions=1)
    await publish(address, App(app.name, operators=[few]))
    async with styx.connect(url, app.name) as client:
        assert {await client.call("few", str(number), "slot") for number in range(10)} == {0}


async def test_a_strangers_record_takes_no_table_back(address: KafkaAddress, url: str, app: App) -> None:
    await publish(address, app, b"no table", b"")
    async with styx.connect(url, app.name) as client:
        assert await client.call("shelf", "key", "echo", 1) == [1]


async def test_not_open(url: str, app: App) -> None:
    client = styx.connect(url, app)
    with pytest.raises(ConfigurationError, match="not open"):
        client.submit("shelf", "key", "echo")
    await client.close()
