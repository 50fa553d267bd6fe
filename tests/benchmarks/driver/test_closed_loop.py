"""The closed loop of one client: as many requests under way as it is told, and the next one at an answer."""

from __future__ import annotations

import asyncio
import time

import pytest

from benchmarks.driver.closed_loop import PAUSE_SECONDS, ClosedLoop
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.reports import RunReport
from benchmarks.driver.sweep import Levels
from benchmarks.driver.target import Outcome
from benchmarks.driver.workload import NobodyIsFree, Planned
from styx.errors import ConfigurationError, RequestRejected
from styx.host.waiters import Receiver
from styx.messages import Reply
from tests.benchmarks.driver.counting import CountingGenerator

PLAN = LoadPlan(rate=1, warm_up_s=0.02, duration_s=0.06, drain_s=0.1, interval_s=0.02, concurrency=3)
COMMITTED = Reply(1, None, 1, 1, 1, "")


class Target:
    """Answers each request in the next turn of the loop, and knows how many it had at once."""

    def __init__(self, answer: Reply | Exception | None = COMMITTED) -> None:
        self.answer = answer
        self.asked = self.at_once = self.at_once_most = 0

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        self.asked += 1
        self.at_once += 1
        self.at_once_most = max(self.at_once, self.at_once_most)
        if self.answer is not None:
            asyncio.get_running_loop().call_soon(self._end, receiver, self.answer)

    def _end(self, receiver: Receiver, answer: Reply | Exception) -> None:
        self.at_once -= 1
        if isinstance(answer, Exception):
            receiver.set_exception(answer)
        else:
            receiver.set_result(answer)


def run(
    target: Target, plan: LoadPlan = PLAN, generator: CountingGenerator | None = None, client: int = 0
) -> RunReport:
    async def main() -> RunReport:
        given = generator or CountingGenerator()
        return await ClosedLoop(target, given, plan, client, time.monotonic(), lambda _: None).run()

    return asyncio.run(main())


def test_as_many_are_under_way_as_it_is_told_and_each_answer_brings_the_next() -> None:
    target = Target()
    report = run(target)
    assert target.at_once_most == 3
    assert report.due == report.sent == sum(report.outcomes.values()) > 10
    assert sum(report.outside.values()) == target.asked - report.sent > 0
    assert not report.shed


def test_without_answers_it_sends_no_more_than_its_level() -> None:
    target = Target(None)
    report = run(target)
    assert target.asked == 3
    assert report.outside == {Outcome.MISSED: 3}, "they were sent in the warm-up"


def test_a_target_that_refuses_is_not_asked_without_a_pause() -> None:
    target = Target(RequestRejected("overloaded", "full"))
    run(target)
    assert 3 <= target.asked <= 3 * 9, "80 ms are 8 pauses, and the first"


@pytest.mark.parametrize(("client", "level"), [(0, 4), (1, 3), (2, 3)])
def test_clients_share_the_level(client: int, level: int) -> None:
    plan = LoadPlan(rate=1, warm_up_s=0, duration_s=0.1, drain_s=0.1, clients=3, concurrency=10)
    target = Target(None)
    run(target, plan, client=client)
    assert target.asked == level


def test_nobody_free_is_no_request() -> None:
    class Two(CountingGenerator):
        def next(self) -> Planned:
            if self.drawn == 2:
                raise NobodyIsFree
            return super().next()

    target = Target()
    report = run(target, generator=Two())
    assert target.asked == 2
    assert not report.shed


@pytest.mark.parametrize("concurrency", [0, 1, 5_000_000])
def test_a_level_that_cannot_be_is_refused(concurrency: int) -> None:
    with pytest.raises(ConfigurationError, match="--concurrency is a number from that of the clients"):
        LoadPlan(rate=1, clients=2, concurrency=concurrency).check()


def test_a_sweep_measures_each_level_once() -> None:
    levels = Levels([4, 16, 8])
    seen = []
    while (level := levels.next_rate()) is not None:
        assert not levels.ended
        seen.append(level)
        levels.record(level, passed=level < 16)
    assert seen == [4, 16, 8]
    assert levels.passed == 8
    assert levels.ended


def test_what_is_refused_at_once_is_not_sent_again_without_a_pause() -> None:
    class Full(Target):
        def submit(self, planned: Planned, receiver: Receiver) -> None:
            self.asked += 1
            receiver.set_exception(RequestRejected("overloaded", "full"))

    target = Full()
    report = run(target)
    # One for each look of the loop.
    assert 0 < target.asked <= 1 + (PLAN.warm_up_s + PLAN.duration_s) / PAUSE_SECONDS
    assert report.outcomes == {Outcome.REJECTED: report.sent}
