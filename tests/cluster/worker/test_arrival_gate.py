"""Requests that wait for each other: when they do, when they do not, and that nothing is lost or doubled by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from styx.cluster.worker.arrival_gate import (
    EXPECTED_MIN,
    FETCH_AHEAD_SECONDS,
    INTERVAL_SECONDS_MAX,
    INTERVAL_SECONDS_PER_PEER,
    TURN_SECONDS,
    ArrivalGate,
)
from styx.log.base import Arrival

WORKERS = 4
INTERVAL = INTERVAL_SECONDS_PER_PEER * (WORKERS - 1)
ENOUGH = 2 * EXPECTED_MIN / INTERVAL
"""Requests a second at which they are held back."""


class FakeTimer:
    def __init__(self, at_s: float, call: Callable[[], None]) -> None:
        self.at_s = at_s
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """A loop whose time the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.timers: list[FakeTimer] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, at_s: float, call: Callable[[], None]) -> FakeTimer:
        self.timers.append(FakeTimer(at_s, call))
        return self.timers[-1]

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        due = [timer for timer in self.timers if timer.at_s <= self.now_s and not timer.cancelled]
        self.timers = [timer for timer in self.timers if timer.at_s > self.now_s and not timer.cancelled]
        for timer in due:
            timer.call()


class Gate:
    """A gate, and the offsets that it has handed on, by slot, hand-over by hand-over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: int = 0, workers: int = WORKERS) -> None:
        self.loop = FakeLoop()
        self.delivered: list[dict[int, list[int]]] = []
        monkeypatch.setattr("styx.cluster.worker.arrival_gate.asyncio.get_running_loop", lambda: self.loop)
        self.gate = ArrivalGate(place, workers, self._deliver)
        self._next = 0

    def _deliver(self, arrived: dict[int, list[Arrival]]) -> None:
        self.delivered.append({slot: [offset for offset, _, _ in each] for slot, each in arrived.items()})

    def arrive(self, count: int = 1, slot: int = 0) -> None:
        first, self._next = self._next, self._next + count
        self.gate.arrive({slot: [(offset, 0, b"") for offset in range(first, first + count)]})

    def load(self, rate: float) -> None:
        """So many requests a second for a while, and an epoch that has just begun."""
        for _ in range(int(5 * rate)):
            self.arrive()
            self.gate.open()
            self.loop.advance(1 / rate)
            self.gate.epoch_began()
        self.delivered.clear()
        self._next = 0


def test_requests_under_load_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    gate.load(ENOUGH)
    gate.arrive(2)
    gate.loop.advance(INTERVAL / 2)
    gate.arrive(1)
    gate.arrive(2, slot=1)
    assert gate.delivered == []
    gate.loop.advance(INTERVAL / 2 + 1e-6)
    assert gate.delivered == [{0: [0, 1, 2], 1: [3, 4]}]
    gate.arrive()
    assert gate.delivered[1:] == [{0: [5]}], "no epoch has begun since"


def test_requests_on_their_own_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    gate.load(EXPECTED_MIN / INTERVAL / 2)
    gate.arrive()
    assert gate.delivered == [{0: [0]}]
    assert gate.gate.fetch_pause_s() == 0


def test_a_worker_alone_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, workers=1)
    gate.load(1e4)
    gate.arrive()
    assert gate.delivered == [{0: [0]}]


def test_it_opens_at_once_when_an_epoch_has_begun_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    gate.load(ENOUGH)
    gate.arrive()
    gate.gate.open()
    assert gate.delivered == [{0: [0]}]
    gate.loop.advance(INTERVAL)
    gate.gate.open()
    assert len(gate.delivered) == 1, "neither the timer nor another opening hands it on again"


def test_the_first_worker_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, place=1)
    gate.load(ENOUGH)
    gate.arrive()
    gate.loop.advance(INTERVAL + TURN_SECONDS / 2)
    assert gate.delivered == []
    gate.loop.advance(TURN_SECONDS)
    assert gate.delivered == [{0: [0]}]


def test_the_wait_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, workers=1_000)
    gate.load(ENOUGH)
    gate.arrive()
    gate.loop.advance(INTERVAL_SECONDS_MAX + 1e-6)
    assert gate.delivered == [{0: [0]}]


def test_what_is_held_ends_with_its_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    gate.load(ENOUGH)
    gate.arrive()
    gate.gate.stop()
    gate.loop.advance(1)
    assert gate.delivered == []


def test_it_fetches_shortly_before_an_epoch_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    gate.load(ENOUGH)
    assert gate.gate.fetch_pause_s() == pytest.approx(INTERVAL - FETCH_AHEAD_SECONDS)
    gate.loop.advance(INTERVAL - FETCH_AHEAD_SECONDS / 2)
    assert gate.gate.fetch_pause_s() == pytest.approx(INTERVAL)
    gate.loop.advance(INTERVAL)
    assert gate.gate.fetch_pause_s() == 0, "the epoch takes longer, or nothing came"
