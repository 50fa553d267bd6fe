"""The marks of a run: those of its own checkouts, with the time at which they were seen; no open order is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.marketplace.driving import marks as module
from benchmarks.marketplace.driving.marks import Marks, open_orders
from benchmarks.marketplace.events import transaction_mark
from benchmarks.marketplace.record import Ended, Kind, Record, pack
from styx.client.base import Client
from styx.errors import EventsCut
from tests.benchmarks.marketplace.test_record import asked
from tests.benchmarks.marketplace.test_report import ACCEPTED

NOT_ACCEPTED = ACCEPTED | {"outcome": "NOT_ACCEPTED", "order_id": None}


class Log:
    """Events of marks: those of `before`, and then those of `after`, one in each turn of the loop. The first `cuts`
    readers are cut off behind one event.
    """

    def __init__(self, before: list[str], after: list[str], cuts: int = 0) -> None:
        self._before = before
        self._after = after
        self._cuts = cuts

    def events(self, event: Any, *, after: str | None = None, follow: bool = True) -> Any:
        assert event is transaction_mark
        whole = [*self._before, *self._after]
        begin = len(self._before) if after == "end" else int(after or 0)
        cuts, self._cuts = self._cuts, max(self._cuts - 1, 0)
        return Reader([*enumerate(whole, 1)][begin:], follow, cut=cuts > 0)


class Reader:
    def __init__(self, sessions: list[tuple[int, str]], follow: bool, *, cut: bool) -> None:
        self._sessions = sessions
        self._follow = follow
        self._cut = cut

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def __aiter__(self) -> AsyncIterator[Any]:
        for cursor, session in self._sessions:
            await asyncio.sleep(0)
            yield SimpleNamespace(value=SimpleNamespace(tid=session, status="SUCCESS"), cursor=str(cursor))
            if self._cut:
                raise EventsCut("the broker is away")
        if self._follow:
            await asyncio.Event().wait()


def submitted(*sessions: str) -> list[dict[str, Any]]:
    requests = [
        asked(number, kind=Kind.CHECKOUT, session=each, result=ACCEPTED) for number, each in enumerate(sessions)
    ]
    return [{"chunks": [pack(requests)]}]


async def settled(log: Log, witnesses: list[Any]) -> list[list[Any]]:
    marks = Marks("run")
    watching = asyncio.create_task(marks.watch(cast("Client", log)))
    try:
        await asyncio.sleep(0)
        await marks.settle(witnesses)
        return cast("list[list[Any]]", marks.witness()["marks"])
    finally:
        watching.cancel()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0)
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0)


def test_it_waits_for_the_mark_of_every_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 60)
    seen = asyncio.run(settled(Log([], ["run-0-1", "another-0-1", "run-0-2"]), submitted("run-0-1", "run-0-2")))
    assert [mark[:2] for mark in seen] == [["run-0-1", "SUCCESS"], ["run-0-2", "SUCCESS"]]
    assert all(mark[2] > 0 for mark in seen)


def test_a_mark_from_before_the_watch_is_read_later_and_has_no_time() -> None:
    seen = asyncio.run(settled(Log(["run-0-1"], ["run-0-2"]), submitted("run-0-1", "run-0-2")))
    assert {mark[0]: bool(mark[2]) for mark in seen} == {"run-0-1": False, "run-0-2": True}


def test_it_goes_on_behind_the_last_mark_when_it_was_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 60)
    log = Log([], ["run-0-1", "run-0-2", "run-0-3"], cuts=2)
    seen = asyncio.run(settled(log, submitted("run-0-1", "run-0-2", "run-0-3")))
    assert [mark[0] for mark in seen] == ["run-0-1", "run-0-2", "run-0-3"]
    assert all(mark[2] > 0 for mark in seen)


def test_an_order_that_stays_open_is_named() -> None:
    with pytest.raises(TimeoutError, match=r"1 orders were neither paid nor failed .* checkout run-0-3"):
        asyncio.run(settled(Log([], ["run-0-1"]), submitted("run-0-1", "run-0-3")))


def test_only_an_answered_order_is_waited_for() -> None:
    requests = [
        asked(1, kind=Kind.CHECKOUT, session="a", result=ACCEPTED),
        asked(2, kind=Kind.CHECKOUT, session="b", result=NOT_ACCEPTED),
        asked(3, kind=Kind.CHECKOUT, session="c", ended=Ended.UNKNOWN, result=None),
        asked(4, kind=Kind.CHECKOUT_AGAIN, session="d", result=ACCEPTED),
        asked(5, kind=Kind.ADD, session="e"),
    ]
    assert open_orders(Record.of(requests)) == {"a", "d"}
