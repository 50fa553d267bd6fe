"""A load on the sender's side: how pairs become chunks, what is repeated, and what is told when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from styx import LoadFailed, LoadReport, NotSent, OutcomeUnknown, RequestRejected, TransactionAborted
from styx.client import load as module
from styx.client.load import LOAD_CHUNKS_IN_FLIGHT_MAX, Chunk, LoadTarget, chunk_bytes_max, load, split_pair
from styx.errors import BadKey
from styx.model.bulk_load import encode_pair, entity_text
from styx.model.limits import Limits
from styx.model.partitioning import Key

pytestmark = pytest.mark.anyio


class Target(LoadTarget):
    """Keys are numbers, their group is the number modulo `groups`. `fails` by key: what sending its chunk raises."""

    operator = "o"

    def __init__(self, groups: int = 1, pairs_max: int = 3) -> None:
        self.groups = groups
        self.pairs_max = pairs_max
        self.sent: list[list[Key]] = []
        self.names: list[str] = []
        self.fails: dict[Any, list[Exception]] = {}
        self.under_way = self.most_under_way = 0
        self.turns = 1

    def place(self, pair: Any) -> tuple[int, Key, bytes]:
        key, value = split_pair(pair)
        if type(key) is not int:
            raise BadKey(f"{key!r} is no key")
        return key % self.groups, key, encode_pair(key, msgspec.msgpack.encode(value))

    async def send(self, chunk: Chunk) -> None:
        self.sent.append(list(chunk.keys))
        self.names.append(chunk.name)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.under_way -= 1
        for key in chunk.keys:
            if self.fails.get(key):
                raise self.fails[key].pop(0)


def exists(key: int) -> TransactionAborted:
    return TransactionAborted("KeyExists", f"{entity_text('o', key)} exists already")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPEAT_WAIT_FIRST_SECONDS", 0.0)


async def test_chunks_are_of_one_group_and_bounded() -> None:
    target = Target(groups=2)
    assert await load(target, [(n, "v") for n in range(9)], "n") == LoadReport(9, 4)
    assert sorted(target.sent) == [[0, 2, 4], [1, 3, 5], [6, 8], [7]]
    assert sorted(target.names) == ["n/0", "n/1", "n/2", "n/3"]


async def test_chunks_are_bounded_in_bytes_but_hold_one_pair_at_least() -> None:
    target = Target(pairs_max=100)
    target.bytes_max = 30
    await load(target, [(1, "x" * 10), (2, "x" * 10), (3, "x" * 10), (4, "x" * 100), (5, "")])
    assert target.sent == [[1, 2], [3], [4], [5]]


async def test_the_same_pairs_have_the_same_names() -> None:
    first, again = Target(groups=3), Target(groups=3)
    for target in (first, again):
        await load(target, [(n * 7 % 50, n) for n in range(50)], "name")
    assert dict(zip(first.names, first.sent, strict=True)) == dict(zip(again.names, again.sent, strict=True))
    unnamed = Target()
    await load(unnamed, [(1, 1)])
    await load(unnamed, [(1, 1)])
    assert len(set(unnamed.names)) == 2


async def test_an_asynchronous_iterable() -> None:
    async def pairs() -> AsyncIterator[tuple[int, int]]:
        for n in range(7):
            await asyncio.sleep(0)
            yield n, n

    target = Target()
    assert await load(target, pairs()) == LoadReport(7, 3)
    assert target.sent == [[0, 1, 2], [3, 4, 5], [6]]


async def test_nothing_to_load() -> None:
    assert await load(Target(), []) == LoadReport(0, 0)


async def test_so_many_are_under_way_at_once() -> None:
    target = Target(pairs_max=1)
    target.turns = 2 * LOAD_CHUNKS_IN_FLIGHT_MAX
    await load(target, [(n, n) for n in range(50)])
    assert target.most_under_way == LOAD_CHUNKS_IN_FLIGHT_MAX


async def test_a_bad_pair_is_found_before_its_chunk_is_sent() -> None:
    target = Target()
    with pytest.raises(LoadFailed) as caught:
        await load(target, [(0, 0), (1, 1), (2, 2), (3, 3), ("x", 4), (5, 5)])
    failed = caught.value
    assert str(failed) == "pair 4: BadKey: 'x' is no key (3 pairs are loaded for certain)"
    assert (failed.loaded, failed.index, failed.code, failed.type) == (3, 4, "bad_arguments", "BadKey")
    assert isinstance(failed.__cause__, BadKey)
    assert target.sent == [[0, 1, 2]]


@pytest.mark.parametrize("pair", [1, "ab", (1,), (1, 2, 3), None, {1: 2}])
async def test_what_is_no_pair(pair: Any) -> None:
    with pytest.raises(LoadFailed, match=r"pair 0: BadArguments: a pair is \(key, value\), got"):
        await load(Target(), [pair])


async def test_the_pair_that_failed_is_told_and_the_rest_is_certain() -> None:
    target = Target(pairs_max=2)
    target.fails[15] = [exists(15)]
    read = []

    def pairs() -> Iterator[tuple[int, int]]:
        for n in range(10, 1000):
            read.append(n)
            yield n, n

    with pytest.raises(LoadFailed) as caught:
        await load(target, pairs())
    failed = caught.value
    assert (failed.key, failed.index, failed.code, failed.type) == (15, 5, "aborted", "KeyExists")
    assert failed.loaded == sum(len(chunk) for chunk in target.sent if 15 not in chunk)
    assert len(read) < 100, "nothing is read in vain once a chunk has failed"


async def test_of_a_key_that_comes_twice_the_second_failed() -> None:
    target = Target()
    target.fails[7] = [exists(7)]
    with pytest.raises(LoadFailed) as caught:
        await load(target, [(7, 1), (8, 1), (7, 1)])
    assert (caught.value.key, caught.value.index) == (7, 2)


async def test_a_part_of_a_chunk_counts() -> None:
    target = Target()
    target.fails[2] = [LoadFailed("aborted", "KeyExists", "it exists", 1, index=1)]
    with pytest.raises(LoadFailed) as caught:
        await load(target, [(n, n) for n in range(3)])
    assert (caught.value.loaded, caught.value.key, caught.value.index) == (1, 1, 1)


@pytest.mark.parametrize(
    "lost",
    [
        TimeoutError("no reply"),
        ConnectionError("broken"),
        OutcomeUnknown("broken"),
        RequestRejected("overloaded", "later"),
        LoadFailed("unavailable", "RequestRejected", "later", 2),
    ],
)
async def test_what_may_be_lost_is_sent_again_under_the_same_name(lost: Exception) -> None:
    target = Target()
    target.attempts_max = 3
    target.fails[1] = [lost, lost]
    assert await load(target, [(1, 1)]) == LoadReport(1, 1)
    assert target.sent == [[1]] * 3
    assert len(set(target.names)) == 1


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("uncertain", [TimeoutError("no reply"), OutcomeUnknown("the disk is full")])
async def test_that_nobody_took_a_chunk_does_not_hide_that_of_another_nobody_knows(
    first: int, uncertain: Exception
) -> None:
    target = Target(groups=2)
    target.fails[first] = [uncertain]
    target.fails[3 - first] = [NotSent("it is closing")]
    with pytest.raises(LoadFailed) as caught:
        await load(target, [(1, 1), (2, 2)])
    assert caught.value.code in ("timeout", "unknown")


async def test_it_is_given_up_after_so_many_attempts() -> None:
    target = Target()
    target.attempts_max = 3
    target.fails[1] = [TimeoutError("no reply")] * 9
    with pytest.raises(LoadFailed) as caught:
        await load(target, [(1, 1)])
    assert len(target.sent) == 3
    assert (caught.value.code, caught.value.loaded, caught.value.index) == ("timeout", 0, None)


async def test_what_failed_for_good_is_not_sent_again() -> None:
    target = Target()
    target.attempts_max = 3
    target.fails[1] = [exists(1)]
    with pytest.raises(LoadFailed):
        await load(target, [(1, 1)])
    assert len(target.sent) == 1


async def test_an_exception_of_the_callers_iterator() -> None:
    def pairs() -> Iterator[tuple[int, int]]:
        for n in range(4):
            yield n, n
        raise OSError("the file is gone")

    with pytest.raises(LoadFailed, match="the file is gone") as caught:
        await load(Target(), pairs())
    assert (caught.value.loaded, caught.value.index) == (3, 4)


async def test_cancelled_it_leaves_nothing_behind() -> None:
    class Stuck(Target):
        async def send(self, chunk: Chunk) -> None:
            await asyncio.Event().wait()

    before = asyncio.all_tasks()
    task = asyncio.ensure_future(load(Stuck(), [(n, n) for n in range(9)]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


def test_a_chunk_leaves_room_in_its_request() -> None:
    assert chunk_bytes_max(Limits()) == module.LOAD_CHUNK_BYTES_MAX
    assert chunk_bytes_max(Limits(request_bytes_max=5000)) == 5000 - 4096
    assert chunk_bytes_max(Limits(request_bytes_max=1)) == 1
