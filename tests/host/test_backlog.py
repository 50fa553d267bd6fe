"""The bound on requests under way, against a server of a known rate: by the second, without a clock."""

from __future__ import annotations

import math
from collections import deque

import pytest

from styx.host.backlog import FEW, INTERVAL_SECONDS, QUEUE_SECONDS, STALL_SECONDS, Backlog

TICK_S = 0.01


class Served:
    """A queue that is served in order at `rate` a second; each request takes `own_s` more, which holds nobody up."""

    def __init__(self, rate: float, own_s: float = 0.0) -> None:
        self.rate = rate
        self.own_s = own_s
        self.backlog = Backlog()
        self.now_s = 1000.0
        self.refused = self.answered = 0
        self.waited_s = 0.0
        """Of the last reply."""
        self.stalled = False
        self._queue: deque[float] = deque()
        self._own: deque[float] = deque()
        self._credit = 0.0

    @property
    def in_flight(self) -> int:
        return len(self._queue) + len(self._own)

    def run(self, seconds: float, offered: float) -> None:
        """So many requests a second come, evenly."""
        due = 0.0
        for _ in range(round(seconds / TICK_S)):
            self.now_s += TICK_S
            due += offered * TICK_S
            while due >= 1:
                due -= 1
                if self.in_flight < self.backlog.bound:
                    self._queue.append(self.now_s)
                else:
                    self.refused += 1
            if not self.stalled:
                self._serve()

    def _serve(self) -> None:
        self._credit = min(self._credit + self.rate * TICK_S, max(self.rate * TICK_S, 1.0))
        while self._queue and self._credit >= 1:
            self._credit -= 1
            self._own.append(self._queue.popleft())
        replied = 0
        while self._own and self.now_s - self._own[0] >= self.own_s:
            self.waited_s = self.now_s - self._own.popleft()
            replied += 1
        if replied:
            self.answered += replied
            self.backlog.answered(self.now_s, replied, self.waited_s, self.in_flight)


@pytest.mark.parametrize("rate", [300, 3_000, 30_000])
@pytest.mark.parametrize("times", [1.2, 2.0, 10.0])
def test_past_the_limit_the_rate_stays_and_no_request_waits_long(rate: float, times: float) -> None:
    served = Served(rate)
    served.run(5, times * rate)
    before = served.answered
    served.run(30, times * rate)
    assert served.answered - before >= 0.99 * 30 * rate
    assert served.waited_s <= 1.3 * QUEUE_SECONDS
    assert served.in_flight <= 1.3 * rate * QUEUE_SECONDS
    # Normal again soon after it ends.
    refused = served.refused
    served.run(2, 0.3 * rate)
    assert served.waited_s <= 0.1
    assert served.refused - refused <= 0.3 * rate * QUEUE_SECONDS
    assert served.backlog.bound == math.inf


def test_within_the_limit_nothing_is_refused() -> None:
    served = Served(3_000)
    served.run(30, 2_900)
    assert served.refused == 0


def test_a_burst_that_is_answered_soon_is_taken_whole() -> None:
    served = Served(10_000)
    served.run(60, 1)
    served.run(0.02, 200_000)
    served.run(5, 1)
    assert served.refused == 0


@pytest.mark.parametrize("stall_s", [0.3, 0.9, STALL_SECONDS + 0.1, 5.0])
def test_a_stall_is_no_slow_rate(stall_s: float) -> None:
    served = Served(10_000)
    served.run(5, 1_000)
    served.stalled = True
    served.run(stall_s, 1_000)
    served.stalled = False
    served.run(5, 1_000)
    assert served.refused == 0


def test_functions_that_take_long_by_themselves_are_no_queue() -> None:
    served = Served(10_000, own_s=3.0)
    served.run(20, 30)
    served.run(20, 500)
    assert served.refused == 0
    assert served.in_flight >= 1_490


def test_few_requests_are_always_let_in() -> None:
    served = Served(5)
    served.run(60, 50)
    assert FEW <= served.in_flight <= FEW + 2


def test_the_bound_is_there_within_intervals_of_the_first_late_reply() -> None:
    served = Served(1_000)
    served.run(1, 900)
    while served.waited_s < QUEUE_SECONDS / 2:
        served.run(TICK_S, 2_000)
    served.run(2 * INTERVAL_SECONDS, 2_000)
    assert served.backlog.bound <= 1.2 * 1_000 * QUEUE_SECONDS
