"""Who waits for an epoch is woken by it or a later one, in time."""

from __future__ import annotations

import asyncio

import pytest

from styx.replica import waits
from styx.replica.waits import EpochWaits


def test_each_is_woken_by_its_epoch_or_a_later_one() -> None:
    async def test() -> None:
        waiting = EpochWaits()
        tasks = {epoch: asyncio.ensure_future(waiting.wait(epoch, 60.0)) for epoch in (7, 3, 5)}
        await asyncio.sleep(0)
        assert waiting.waiting == 3
        for epoch, woken in ((2, set[int]()), (3, {3}), (6, {3, 5}), (9, {3, 5, 7})):
            waiting.come(epoch)
            for _ in range(3):
                await asyncio.sleep(0)
            assert {each for each, task in tasks.items() if task.done()} == woken
        assert waiting.waiting == 0

    asyncio.run(test())


def test_who_waits_in_vain_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "WAITING_MAX", 4)

    async def test() -> None:
        waiting = EpochWaits()
        for _ in range(20):
            with pytest.raises(TimeoutError):
                await waiting.wait(10**9, 0.0)
        assert waiting.waiting == 0
        assert len(waiting._heap) <= 4

    asyncio.run(test())
