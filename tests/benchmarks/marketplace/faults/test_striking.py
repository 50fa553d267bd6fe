"""One fault in each period, healed before the next, on a virtual clock; what it does is faked here."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from benchmarks.marketplace.faults import striking
from benchmarks.marketplace.faults.kinds import Drawn
from benchmarks.marketplace.faults.striking import LATEST_SHARE, Striker, Struck
from proof.cluster.child import ChildFailed
from proof.cluster.timed_faults import OnServers
from proof.simulation.virtual_loop import VirtualLoop
from proof.simulation.virtual_time import VirtualTime


class Cluster:
    """Healed a second after its processes are back."""

    def __init__(self, *, ended: bool = False) -> None:
        self.ended = ended

    async def settled(self) -> None:
        await asyncio.sleep(1)

    async def ready(self) -> None: ...

    def check(self) -> None:
        if self.ended:
            raise ChildFailed("w0 ended by itself")


def struck(monkeypatch: pytest.MonkeyPatch, seconds: float, *, cluster: Cluster | None = None) -> list[Struck]:
    """Of a minute in periods of ten seconds, by a fault that lasts so long."""

    async def away(provider: Any) -> None:
        await asyncio.sleep(seconds)

    async def healed(_: Struck) -> None: ...

    monkeypatch.setitem(striking.OF_PROVIDER, "provider-down", away)
    virtual_time, ended = VirtualTime(), False
    loop = VirtualLoop(virtual_time, 1.0)  # type: ignore[abstract]  # only what tasks need
    processes: Any = OnServers(cluster or Cluster(), *(None,) * 2, Random(3), lambda: None)  # type: ignore[arg-type]
    faults = iter([Drawn("provider", "provider-down")] * 6)
    striker = Striker(processes, None, faults, healed, clock=lambda: virtual_time.now_s)  # type: ignore[arg-type]
    task = loop.begin(striker.run(0.0, 65.0, 10.0))
    while not task.done():
        ended = not virtual_time.next()
        assert not ended
    task.result()
    return striker.struck


def test_a_fault_in_each_whole_period(monkeypatch: pytest.MonkeyPatch) -> None:
    found = struck(monkeypatch, 4.0)
    assert [int(each.at_s // 10) for each in found] == [0, 1, 2, 3, 4, 5]
    assert all(each.at_s % 10 <= LATEST_SHARE * 10 for each in found)
    assert len({round(each.at_s % 10, 3) for each in found}) == 6, "at times that differ"
    assert [each.healed_s for each in found] == [pytest.approx(5.0)] * 6
    assert {(each.kind, each.fault) for each in found} == {("provider", "provider-down")}


def test_a_fault_that_takes_more_than_its_period_uses_up_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    found = struck(monkeypatch, 15.0)
    assert len(found) == 4
    ends = [each.at_s + each.healed_s for each in found]
    assert all(end_s <= after.at_s for end_s, after in zip(ends, found[1:], strict=False))


def test_a_process_that_has_ended_by_itself_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChildFailed, match="by itself"):
        struck(monkeypatch, 1.0, cluster=Cluster(ended=True))
