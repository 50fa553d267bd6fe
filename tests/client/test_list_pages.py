"""A page is put together of slots that read at other epochs, give less than they were asked for, and drop versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from styx.client.list_pages import RawPage, list_page
from styx.errors import BadArguments, SnapshotTooOld
from styx.model.entity_list import Listing

pytestmark = pytest.mark.anyio

Asked = tuple[int, Any, int, int | None]


class Slots:
    """Slots that hold whole numbers; each has the value of an entry at an epoch in `values`. `epochs`: the newest epoch
    of each; `oldest`: what is kept. `unordered`: how often each says that its keys are not in order. `most`: entries
    that a slot gives at once.
    """

    def __init__(
        self, n_keys: int, epochs: Sequence[int], oldest: int = 0, unordered: int = 0, most: int = 500
    ) -> None:
        self.epochs = list(epochs)
        self.oldest = oldest
        self.asked: list[Asked] = []
        self._keys = [[key for key in range(n_keys) if key % len(epochs) == slot] for slot in range(len(epochs))]
        self._unordered = [unordered] * len(epochs)
        self._most = most

    async def ask(self, slot: int, arguments: tuple[Any, ...], at: int | None) -> tuple[Any, int]:
        table, prefix, after, first, room, values = arguments
        assert (table, prefix, values) == ("", "", True)
        assert room > 0
        self.asked.append((slot, after, first, at))
        epoch = self.epochs[slot] if at is None else at
        if epoch < self.oldest:
            self.oldest = 0  # the next attempt finds it
            raise SnapshotTooOld("too old")
        self.epochs[slot] = max(self.epochs[slot], epoch)
        if self._unordered[slot]:
            self._unordered[slot] -= 1
            return None, epoch
        found = [key for key in self._keys[slot] if after is None or key > int(after)]
        given = found[: min(first, self._most)]
        return msgspec.msgpack.encode(([(key, epoch) for key in given], len(given) < len(found))), epoch


async def page(slots: Slots, limit: int = 10, after: str | None = None, at: int | None = None) -> RawPage:
    return await list_page(slots.ask, len(slots.epochs), Listing("counter", after=after, limit=limit), at)


async def test_all_of_a_page_is_of_the_newest_epoch_that_a_slot_gave() -> None:
    slots = Slots(30, [4, 9, 7])
    found = await page(slots)
    assert [key for key, _ in found.entries] == list(range(10))
    assert found.epoch == 9
    assert {msgspec.msgpack.decode(value) for _, value in found.entries} == {9}
    assert [(slot, at) for slot, _, _, at in slots.asked] == [(0, None), (1, None), (2, None), (0, 9), (2, 9)]


async def test_a_page_at_an_epoch_asks_each_slot_for_that_one() -> None:
    slots = Slots(30, [4, 9, 7])
    found = await page(slots, after="9", at=3)
    assert [key for key, _ in found.entries] == list(range(10, 20))
    assert (found.epoch, found.after) == (3, "19")
    assert {at for *_, at in slots.asked} == {3}


@pytest.mark.parametrize("most", [1, 2, 500])
@pytest.mark.parametrize("limit", [1, 7, 25, 1_000])
@pytest.mark.parametrize("n_slots", [1, 3, 40])
async def test_pages_have_all_keys_however_little_a_slot_gives(n_slots: int, limit: int, most: int) -> None:
    slots = Slots(60, [5] * n_slots, most=most)
    keys: list[int] = []
    after: str | None = None
    while True:
        found = await page(slots, limit, after, at=5)
        keys += [key for key, _ in found.entries]
        after = found.after
        assert after == (str(keys[-1]) if len(keys) < 60 else None)
        if after is None:
            break
        assert len(found.entries) == limit
    assert keys == list(range(60))


async def test_a_full_page_asks_for_no_more() -> None:
    slots = Slots(30, [5], most=5)
    assert (await page(slots, 5)).after == "4"
    assert len(slots.asked) == 1


async def test_a_slot_is_asked_until_its_keys_are_in_order() -> None:
    slots = Slots(10, [5, 5], unordered=3)
    assert [key for key, _ in (await page(slots)).entries] == list(range(10))
    assert len(slots.asked) == 8


async def test_a_page_of_any_epoch_begins_again_if_versions_do_not_last() -> None:
    slots = Slots(10, [5, 6], oldest=6)
    assert (await page(slots)).epoch == 6
    with pytest.raises(SnapshotTooOld):
        await page(Slots(10, [5, 6], oldest=6), at=5)


async def test_empty_slots_make_an_empty_page() -> None:
    assert await page(Slots(0, [2, 3])) == RawPage([], None, 3)


@pytest.mark.parametrize("limit", [0, -1, 10_001, True, 1.5])
async def test_a_page_has_a_limit(limit: Any) -> None:
    with pytest.raises(BadArguments, match="1 to 10000 entries"):
        await page(Slots(1, [0]), limit)
