"""What the journal of a coordinator fences: producers of all places, those of events only where there may be any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from styx.cluster.coordinator import journal as module
from styx.cluster.coordinator.journal import ClusterJournal
from styx.host.ports import Identity

pytestmark = pytest.mark.anyio
OF_WORKERS = ["styx.shop.worker.0", "styx.shop.worker.1"]
OF_EVENTS = ["styx.shop.events.0", "styx.shop.events.1"]


@pytest.mark.parametrize(("may_emit", "wanted"), [(False, OF_WORKERS), (True, OF_WORKERS + OF_EVENTS)])
async def test_events_are_fenced_only_where_there_may_be_any(
    monkeypatch: pytest.MonkeyPatch, may_emit: bool, wanted: list[str]
) -> None:
    async def fence(address: Any, producers: Iterable[str]) -> list[Identity]:
        fenced.extend(producers)
        return [(number, 0) for number, _ in enumerate(fenced)]

    monkeypatch.setattr(module, "fence", fence)
    fenced: list[str] = []
    told: list[list[Identity]] = []
    failures: list[BaseException] = []
    nothing: Any = None
    journal = ClusterJournal("shop", 2, nothing, nothing, nothing, False, failures.append)
    journal.may_emit = lambda: may_emit
    journal.fence(1, told.append)
    [task] = journal._tasks
    await task
    assert (fenced, failures) == (wanted, [])
    assert told == [[(number, 0) for number, _ in enumerate(wanted)]]
