"""From an operator and a key to a slot: by code and by table they agree, and wrong keys are refused.

Which of the records in the directory topic is the table.
"""

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx import App, Operator
from styx.client.kafka import routing
from styx.client.kafka.routing import TableRouter, read_routing_table
from styx.errors import BadArguments, BadKey, ConfigurationError, NotSent
from styx.kafka.address import KafkaAddress
from styx.kafka.topics import ROUTING_KEY
from styx.model.request import AppRouter, Router
from styx.schema.description import describe, routing_table
from tests.client.kafka.fake_session import FakeSession

shelf = Operator("shelf")
few = Operator("few", n_partitions=3, key_type=int)
paired = Operator("paired", key_type=(int, str))
grouped = Operator("grouped", key_type=(int, str), partition_key=lambda key: key[0])
app = App("shop", operators=[shelf, few, paired, grouped])

BY_APP = AppRouter(app, 16)
BY_TABLE = TableRouter(routing_table(describe(app)), 16)
both = pytest.mark.parametrize("router", [BY_APP, BY_TABLE])


def test_table_and_app_agree() -> None:
    keys: list[tuple[Operator, Any]] = [
        *((shelf, f"key {number}") for number in range(100)),
        *((few, number) for number in range(100)),
        *((paired, (number, "x")) for number in range(100)),
    ]
    slots = set()
    for operator, key in keys:
        key_and_slot = BY_APP.place(operator.name, key)
        assert key_and_slot == BY_TABLE.place(operator.name, key) == BY_TABLE.place(operator, key)
        assert key_and_slot == (key, operator.partition_of(key, 16) % 16)
        slots.add((operator.name, key_and_slot[1]))
    assert len(slots) == 16 + 3 + 16


@both
@pytest.mark.parametrize(("operator", "key"), [("shelf", 1), ("few", "1"), ("paired", ("1", 1))])
def test_wrong_keys(router: Router, operator: str, key: Any) -> None:
    with pytest.raises(BadKey, match="has keys of type"):
        router.place(operator, key)


@both
def test_lists_are_tuples(router: Router) -> None:
    assert router.place("paired", [1, "x"]) == router.place("paired", (1, "x"))


@both
def test_unknown_operators_have_slot_0(router: Router) -> None:
    assert router.place("nothing", "key") == ("key", 0)


def test_an_own_partition_key_is_known_only_to_the_code() -> None:
    assert len({BY_APP.place("grouped", (1, str(number)))[1] for number in range(50)}) == 1
    assert BY_TABLE.place(grouped, (1, "x")) == BY_APP.place("grouped", (1, "x"))
    BY_TABLE.require_exact("shelf")
    BY_TABLE.require_exact("nothing")
    with pytest.raises(BadArguments, match="connect with the App"):
        BY_TABLE.require_exact("grouped")


NOT_LEADER, NOT_ALLOWED = 6, 29
TABLE = routing_table(describe(app)).encode()
NEWER = routing_table(describe(App("shop", operators=[few]))).encode()
OTHER_KEY = b"another"


class Directory(FakeSession):
    """Takes the place of the session that reading the table opens; `closed` says how often that was closed."""

    closed = 0

    def __call__(self, address: KafkaAddress) -> "Directory":
        return self

    async def open(self, topics: list[str]) -> None:
        assert topics == ["styx.shop.directory"]

    async def close(self) -> None:
        self.closed += 1

    def answer(self, *records: tuple[bytes, bytes | None], code: int = 0) -> None:
        """To the next fetch: these records (key, value), at the offsets from `end` on."""
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
        for number, (key, value) in enumerate(records):
            builder.append(number, 1_000, key, value, [])
        data = self.end.to_bytes(8, "big") + bytes(builder.build())[8:] if records else b""
        self.end += len(records)
        self.fetched.put_nowait((code, self.end, data))


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Directory:
    directory = Directory()
    monkeypatch.setattr(routing, "KafkaSession", directory)
    monkeypatch.setattr(routing, "RETRY_SECONDS", 0)
    return directory


async def read() -> set[str]:
    """The operators of the table."""
    return set((await read_routing_table(KafkaAddress("nowhere:9092"), "shop")).operators)


@pytest.mark.anyio
async def test_the_newest_table_counts(directory: Directory) -> None:
    directory.first = directory.end = 5
    directory.answer((ROUTING_KEY, NEWER), (ROUTING_KEY, TABLE))
    directory.answer((OTHER_KEY, b"x"), (ROUTING_KEY, NEWER))
    assert await read() == {"few"}
    assert [directory.fetches.get_nowait() for _ in range(2)] == [(0, 5), (0, 7)]
    assert directory.closed == 1


@pytest.mark.anyio
async def test_a_strangers_record_takes_no_table_back(directory: Directory) -> None:
    directory.answer((ROUTING_KEY, b"no table"), (ROUTING_KEY, TABLE), (ROUTING_KEY, None), (ROUTING_KEY, b"\xff"))
    assert "grouped" in await read()


@pytest.mark.anyio
async def test_without_a_table_the_error_says_why(directory: Directory) -> None:
    with pytest.raises(ConfigurationError, match="is it deployed"):
        await read()
    directory.answer((ROUTING_KEY, b"no table"))
    with pytest.raises(ConfigurationError, match=r"cannot be read: .*Start the coordinator again"):
        await read()


@pytest.mark.anyio
async def test_a_leader_that_moves_is_asked_again(directory: Directory) -> None:
    directory.answer(code=NOT_LEADER)
    directory.answer((ROUTING_KEY, TABLE))
    assert "shelf" in await read()


@pytest.mark.anyio
async def test_a_broker_that_refuses_ends_reading(directory: Directory) -> None:
    directory.end = 1
    directory.answer(code=NOT_ALLOWED)
    with pytest.raises(NotSent, match=r"the topic styx\.shop\.directory cannot be read: .*error 29"):
        await read()
    assert directory.closed == 1
