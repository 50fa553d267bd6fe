"""The open loop of one client against targets that answer at once, never, or late."""

from __future__ import annotations

import asyncio
import time

from benchmarks.driver.open_loop import OpenLoop
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.reports import Progress, RunReport
from benchmarks.driver.sending import hopeless_in_flight
from benchmarks.driver.target import Outcome
from benchmarks.driver.workload import NobodyIsFree, Planned
from styx.errors import RequestRejected
from styx.host.waiters import Receiver
from styx.messages import Reply, ReplyError
from tests.benchmarks.driver.counting import CountingGenerator

PLAN = LoadPlan(rate=500, warm_up_s=0.02, duration_s=0.08, drain_s=0.1, tick_s=0.002, interval_s=0.02)
COMMITTED = Reply(1, None, 1, 1, 1, "")
ABORTED = Reply(None, ReplyError("Refused", "", "aborted"), 1, 1, 0, "")


class Target:
    """Gives one of `answers` after the other, in the next turn of the event loop; None: never."""

    def __init__(self, *answers: Reply | Exception | None) -> None:
        self._answers = answers
        self.receivers: list[Receiver] = []

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        answer = self._answers[len(self.receivers) % len(self._answers)]
        self.receivers.append(receiver)
        if isinstance(answer, Exception):
            asyncio.get_running_loop().call_soon(receiver.set_exception, answer)
        elif answer is not None:
            asyncio.get_running_loop().call_soon(receiver.set_result, answer)


def run(
    target: Target, plan: LoadPlan = PLAN, generator: CountingGenerator | None = None
) -> tuple[RunReport, list[Progress]]:
    told: list[Progress] = []

    async def main() -> RunReport:
        generated = generator or CountingGenerator()
        return await OpenLoop(target, generated, plan, 0, time.monotonic(), told.append).run()

    return asyncio.run(main()), told


def test_every_request_of_the_window_is_counted_once() -> None:
    generator = CountingGenerator()
    report, _ = run(Target(COMMITTED, COMMITTED, ABORTED, RequestRejected("overloaded", "full")), generator=generator)
    assert (report.due, report.sent, report.shed, report.gave_up) == (40, 40, 0, "")
    assert report.outcomes == {Outcome.COMMITTED: 20, Outcome.ABORTED: 10, Outcome.REJECTED: 10}
    assert sum(report.outside.values()) == 10
    assert generator.drawn == 50
    assert report.errors == {"aborted:Refused": 12, "rejected:overloaded": 12}
    kinds = report.latency["add"]
    assert {outcome: sum(cells.values()) for outcome, cells in kinds.items()} == report.outcomes
    assert sum(interval.sent for interval in report.intervals.values()) == 50
    assert sum(sum(interval.outcomes.values()) for interval in report.intervals.values()) == 50


def test_a_request_without_a_reply_is_missed_and_its_outcome_unknown() -> None:
    generator = CountingGenerator()
    target = Target(COMMITTED, None)
    report, _ = run(target, generator=generator)
    assert report.outcomes == {Outcome.COMMITTED: 20, Outcome.MISSED: 20}
    assert generator.unknowns == 25
    assert report.errors["missed:timeout"] == 25


def test_a_broken_connection_leaves_the_outcome_unknown() -> None:
    report, _ = run(Target(ConnectionError("gone")))
    assert report.outcomes == {Outcome.UNKNOWN: 40}
    assert report.errors == {"unknown:ConnectionError": 50}


def test_what_is_due_beyond_the_limit_in_flight_is_shed() -> None:
    plan = LoadPlan(rate=500, warm_up_s=0, duration_s=0.1, drain_s=0.1, tick_s=0.002, in_flight_max=30)
    report, _ = run(Target(None), plan)
    assert (report.due, report.sent, report.shed) == (50, 30, 20)


def test_latency_begins_when_a_request_was_due_however_late_the_client_is() -> None:
    class Slow(CountingGenerator):
        def next(self) -> Planned:
            if self.drawn == 10:
                time.sleep(0.05)
            return super().next()

    plan = LoadPlan(rate=500, warm_up_s=0, duration_s=0.1, drain_s=0.1, tick_s=0.002)
    report, _ = run(Target(COMMITTED), plan, Slow())
    assert report.due == report.sent == 50
    cells = report.latency["add"][Outcome.COMMITTED]
    # The request itself, and those due in the 50 ms meanwhile: evenly late from 50 ms down.
    assert sum(count for lowest, count in cells.items() if lowest >= 20_000) >= 13
    assert sum(count for lowest, count in report.late.items() if lowest >= 20_000) >= 12


def test_a_hopeless_run_is_given_up() -> None:
    plan = LoadPlan(rate=1000, warm_up_s=0, duration_s=5, drain_s=0.1, tick_s=0.002, give_up_s=0.02)
    report, _ = run(Target(None), plan)
    assert report.gave_up
    assert report.sent < 1000
    # The rate of what was due is the plan's: it counts to where the run was given up.
    assert 0 < report.window_s < 5
    assert report.due / report.window_s > 500


def test_a_run_without_a_bound_is_never_given_up() -> None:
    assert hopeless_in_flight(PLAN) == float("inf")


def test_giving_up_waits_until_the_p99_is_certain_to_be_over_the_bound() -> None:
    plan = LoadPlan(rate=1000, duration_s=10, clients=2, give_up_s=1.0)
    # 500/s of one client: 500 may be under way within a second, and 50 of 5000 may be late.
    assert hopeless_in_flight(plan) >= 550
    assert hopeless_in_flight(plan) <= 2000


def test_a_reply_after_the_drain_changes_nothing() -> None:
    async def main() -> RunReport:
        target = Target(None)
        generator = CountingGenerator()
        report = await OpenLoop(target, generator, PLAN, 0, time.monotonic(), lambda _: None).run()
        assert all(receiver.done() for receiver in target.receivers)
        assert generator.committed == 0
        return report

    assert asyncio.run(main()).outcomes == {Outcome.MISSED: 40}


class Prepared(CountingGenerator):
    """Every request is two: a step, and behind it what it was for."""

    def next(self) -> Planned:
        return super().next()._replace(kind="step", step=True)

    def answered(self, planned: Planned, reply: Reply) -> list[Planned] | None:  # type: ignore[override]
        super().answered(planned, reply)
        return [planned._replace(kind="add", step=False)] if planned.step and reply.error is None else None


def test_what_follows_a_step_is_counted_and_the_step_is_kept_apart() -> None:
    generator = Prepared()
    report, _ = run(Target(COMMITTED), generator=generator)
    assert report.sent == 40
    assert report.outcomes == {Outcome.COMMITTED: 40}
    assert generator.committed == 100, "each of 50 requests and their steps, warm-up included"
    assert {kind: [*cells] for kind, cells in report.latency.items()} == {"add": [Outcome.COMMITTED]}
    assert sum(report.steps["step"][Outcome.COMMITTED].values()) == 40


def test_a_step_that_does_not_commit_is_what_became_of_its_request() -> None:
    report, _ = run(Target(ABORTED), generator=Prepared())
    assert report.outcomes == {Outcome.ABORTED: 40}
    assert sum(report.steps["step"][Outcome.ABORTED].values()) == 40
    lost, _ = run(Target(None), generator=Prepared())
    assert lost.outcomes == {Outcome.MISSED: 40}


def test_what_is_due_while_nobody_is_free_is_shed() -> None:
    class Few(CountingGenerator):
        def next(self) -> Planned:
            if self.drawn == 30:
                raise NobodyIsFree
            return super().next()

    report, _ = run(Target(COMMITTED), generator=Few())
    assert sum(report.outcomes.values()) + sum(report.outside.values()) == 30
    assert report.sent + report.shed == report.due == 40
