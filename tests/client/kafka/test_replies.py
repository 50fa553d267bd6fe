"""Reading replies: where it begins, where it goes on, and what is passed over."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from styx.client.kafka import replies as replies_module
from styx.client.kafka.replies import ReplyReader
from styx.errors import NotSent
from styx.kafka import tail as tail_module
from styx.kafka.session import KafkaSession
from styx.kafka.wire import Chunk
from styx.testing.patience import PATIENCE_SECONDS
from tests.client.kafka.fake_session import FakeSession, turns

pytestmark = pytest.mark.anyio

OUT_OF_RANGE = 1
NOT_LEADER = 6
NOT_ALLOWED = 29
TURN = -1
"""Others had their turn."""


def batch(first: int, *keys: bytes) -> bytes:
    """Records with these keys, from this offset on."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, 0, 1_000_000)
    for index, key in enumerate(keys):
        builder.append(index, 1000, key, b"value", [])
    return first.to_bytes(8, "big") + bytes(builder.build())[8:]


def control(first: int) -> bytes:
    """The end of a transaction, which is a record for nobody."""
    whole = bytearray(batch(first, b"commit"))
    whole[22] |= 0x20
    whole[17:21] = calc_crc32c(bytes(whole[21:])).to_bytes(4, "big")
    return bytes(whole)


def damaged(whole: bytes) -> bytes:
    """Its last byte is another one."""
    return whole[:-1] + bytes([whole[-1] ^ 1])


class Read:
    """A reader and what it has told."""

    def __init__(self, session: FakeSession) -> None:
        self.session = session
        self.keys: list[bytes] = []
        self.pieces: list[int] = []
        self.passed_over = 0
        self.failures: list[BaseException] = []
        self.reader = ReplyReader(
            cast(KafkaSession, session),
            "replies",
            3,
            deliver=self._deliver,
            passed_over=self._pass_over,
            failed=self.failures.append,
        )

    def _deliver(self, records: list[Any]) -> None:
        self.keys += [record.key for record in records]
        self.pieces.append(len(records))
        asyncio.get_running_loop().call_soon(self.pieces.append, TURN)

    def _pass_over(self) -> None:
        self.passed_over += 1

    async def answer(self, data: bytes = b"", code: int = 0, end: int = 10_000) -> tuple[int, int]:
        """Answers the next fetch; its node and offset."""
        return await self._next((code, end, data))

    async def fail(self, error: Exception) -> tuple[int, int]:
        """Fails the next fetch."""
        return await self._next(error)

    async def asked(self) -> tuple[int, int]:
        """The next fetch, which is answered with nothing."""
        return await self.answer()

    async def _next(self, answer: Any) -> tuple[int, int]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            fetch = await self.session.fetches.get()
        self.session.fetched.put_nowait(answer)
        await turns()
        return fetch


@pytest.fixture
async def read(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Read]:
    monkeypatch.setattr(replies_module, "RETRY_SECONDS", 0)
    monkeypatch.setattr(tail_module, "AWAY_SECONDS_MAX", 0)
    monkeypatch.setattr(replies_module, "REPLIES_BATCH_MAX", 3)
    session = FakeSession()
    session.end = 100
    read = Read(session)
    await read.reader.start()
    yield read
    assert not read.failures
    await read.reader.stop()


async def test_it_is_stuck_when_a_turn_does_not_end(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read.reader.stuck_reason is None
    monkeypatch.setattr(replies_module, "STUCK_SECONDS", 0.01)
    await asyncio.sleep(0.02)  # nobody answers its fetch
    assert "reading replies has made no progress" in (read.reader.stuck_reason or "")
    await read.fail(ConnectionError("Kafka is away"))  # which is no reason to end
    assert read.reader.stuck_reason is None


async def test_from_the_end_on(read: Read) -> None:
    # A batch comes whole, whatever the offset asked for.
    assert await read.answer(batch(98, b"old", b"old", b"a") + batch(101, b"b")) == (0, 100)
    assert await read.answer(batch(102, b"c") + control(103)) == (0, 102)
    assert await read.answer(control(104)) == (0, 104)
    assert await read.asked() == (0, 105)
    assert read.keys == [b"a", b"b", b"c"]


async def test_others_have_their_turn(read: Read) -> None:
    await read.answer(batch(100, *[b"x"] * 7))
    assert await read.asked() == (0, 107)
    assert read.pieces == [3, TURN, 3, TURN, 1, TURN]
    # Also if a piece is just full.
    await read.answer(batch(107, *[b"x"] * 3))
    assert await read.asked() == (0, 110)


async def test_it_goes_on_where_it_was(read: Read) -> None:
    await read.answer(batch(100, b"a"))
    for _ in range(3):
        assert await read.fail(ConnectionError("away")) == (0, 101)
    read.session.leaders = {3: 4}
    # The answer to what was asked before, and the one of another broker.
    assert await read.answer(code=NOT_LEADER) == (0, 101)
    assert await read.answer(batch(101, b"b")) == (4, 101)
    assert await read.asked() == (4, 102)
    assert read.keys == [b"a", b"b"]


async def test_no_leader_for_a_while(read: Read) -> None:
    read.session.leaders = {3: None}
    await read.asked()
    assert read.session.fetches.empty()
    read.session.leaders = {}
    assert await read.answer(batch(100, b"a")) == (0, 100)
    assert read.keys == [b"a"]


async def test_refused_for_a_while(read: Read) -> None:
    await read.answer(code=NOT_ALLOWED)
    assert await read.answer(batch(100, b"a")) == (0, 100)
    assert read.keys == [b"a"]


@pytest.mark.parametrize(
    ("first", "end", "position"),
    [(200, 300, 300), (0, 50, 50), (0, 200, 100)],
    ids=["deleted", "never there", "there after all"],
)
async def test_an_offset_that_the_broker_does_not_have(read: Read, first: int, end: int, position: int) -> None:
    read.session.first, read.session.end = first, end
    await read.answer(code=OUT_OF_RANGE)
    assert await read.asked() == (0, position)


async def test_what_is_damaged_is_asked_for_again_and_then_passed_over(read: Read) -> None:
    answer = batch(100, b"a") + damaged(batch(101, b"b", b"c")) + batch(103, b"d")
    assert await read.answer(answer) == (0, 100)
    assert (read.keys, read.passed_over) == ([b"a"], 0)
    assert await read.answer(damaged(batch(101, b"b", b"c")) + batch(103, b"d")) == (0, 101)
    assert await read.answer(batch(103, b"d")) == (0, 103)
    assert (read.keys, read.passed_over) == ([b"a", b"d"], 1)


async def test_damage_on_the_way(read: Read) -> None:
    await read.answer(damaged(batch(100, b"a")))
    assert await read.answer(batch(100, b"a")) == (0, 100)
    assert (read.keys, read.passed_over) == ([b"a"], 0)


async def test_garbage_instead_of_batches(read: Read) -> None:
    for offset in (100, 100, 101, 102):
        assert await read.answer(b"\x00" * 16 + b"\x02" + bytes(100)) == (0, offset)
    await read.answer(batch(103, b"a"))
    assert (read.keys, read.passed_over) == ([b"a"], 3)


def test_behind_damage() -> None:
    assert Chunk(0, 20, control(10) + damaged(batch(11, b"a", b"b"))).behind_damage(10) == 13
    three = damaged(batch(10, b"a", b"b", b"c"))
    assert Chunk(0, 20, batch(9, b"x") + three).behind_damage(10) == 13
    # Beyond the end, or without any batch: that cannot be believed.
    assert Chunk(0, 12, three).behind_damage(10) == 11
    assert Chunk(0, 20, b"garbage").behind_damage(10) == 11


async def test_away_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession()
    session.leaders = {3: None}
    with pytest.raises(NotSent, match=r"the replies topic cannot be read: .* has no leader"):
        await Read(session).reader.start()
