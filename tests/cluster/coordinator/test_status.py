"""What people hear of snapshots that fail, and how fast a cluster is said to be."""

import asyncio

import pytest

from styx.cluster.coordinator.status import SAMPLE_SECONDS, WINDOW_SAMPLES, Rates, SnapshotWatch
from styx.deployment.claim import NAME
from styx.host.background import Background, on_running_loop
from styx.store.memory import MemoryStore


class AwayStore(MemoryStore):
    away = True

    def get(self, name: str) -> bytes:
        if self.away:
            raise ConnectionError("nobody answers")
        return super().get(name)


def test_failing_since_the_first_of_them_until_one_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.cluster.coordinator.status.PROBE_SECONDS", 0.001)

    async def main() -> None:
        store = AwayStore()
        store.put(NAME, b"")
        background = Background(lambda *_: None, on_running_loop())
        watch = SnapshotWatch(store, background)
        assert (watch.failing_since_s, watch.stored_at_s) == (None, None)
        watch.failed(10.0, epoch=5)
        watch.failed(10.1, epoch=5)  # told to each worker
        watch.failed(20.0, epoch=6)
        assert (watch.failures, watch.failing_since_s) == (2, 10.0)
        while watch.store_problem is None:  # noqa: ASYNC110 - a probe is no event source
            await asyncio.sleep(0.001)
        assert watch.store_problem == "the store is out of reach: nobody answers"
        store.away = False
        while watch.store_problem is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        assert watch.failing_since_s == 10.0, "a store that is back is no snapshot yet"
        watch.completed(30.0)
        assert (watch.failing_since_s, watch.stored_at_s, watch.failures) == (None, 30.0, 2)
        background.abandon()

    asyncio.run(main())


def test_rates() -> None:
    rates = Rates()
    assert rates.per_second() == (0.0, 0.0)
    for tick in range(1000):
        rates.sample(tick * 0.05, tick, 10 * tick)
    epochs, transactions = rates.per_second()
    assert epochs == pytest.approx(20.0)
    assert transactions == pytest.approx(200.0)
    for tick in range(1000, 1000 + int((WINDOW_SAMPLES + 2) * SAMPLE_SECONDS / 0.05)):
        rates.sample(tick * 0.05, 0, 10_000)
    assert rates.per_second() == (0.0, 0.0), "a recovery goes back to an older epoch"
