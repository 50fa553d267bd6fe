"""What a client's recorder makes of latencies: intervals, totals, progress."""

from __future__ import annotations

from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.recorder import Recorder
from benchmarks.driver.target import Outcome

PLAN = LoadPlan(rate=100, warm_up_s=1.0, duration_s=2.0, interval_s=0.5)
START_S = 100.0


def _recorder() -> Recorder:
    return Recorder(PLAN, START_S)


def test_an_interval_has_what_came_in_it() -> None:
    recorder = _recorder()
    recorder.sent = 7
    recorder.latencies["add", Outcome.COMMITTED, False] = [1000, 2000]
    recorder.roll(100.6)
    assert recorder.rolls_s == 101.0
    recorder.sent = 9
    recorder.latencies["add", Outcome.ABORTED, True] = [3000]
    recorder.roll(102.1)
    report = recorder.finish("")
    assert {number: (each.sent, each.outcomes) for number, each in report.intervals.items()} == {
        0: (7, {Outcome.COMMITTED: 2}),
        1: (2, {Outcome.ABORTED: 1}),
    }
    assert report.outside == {Outcome.COMMITTED: 2}
    assert report.outcomes == {Outcome.ABORTED: 1}
    assert sum(report.latency["add"][Outcome.ABORTED].values()) == 1
    assert Outcome.COMMITTED not in report.latency["add"]


def test_only_answers_have_a_latency_in_the_time_line() -> None:
    recorder = _recorder()
    recorder.latencies["add", Outcome.MISSED, True] = [30_000_000]
    recorder.latencies["add", Outcome.COMMITTED, True] = [1000]
    report = recorder.finish("")
    assert report.intervals[0].outcomes == {Outcome.MISSED: 1, Outcome.COMMITTED: 1}
    assert sum(report.intervals[0].latency.values()) == 1


def test_progress_is_told_once_a_second_with_that_seconds_latencies() -> None:
    recorder = _recorder()
    recorder.latencies["add", Outcome.COMMITTED, False] = [1000]
    recorder.roll(100.5)
    assert recorder.progress(100.5, 3) is None
    recorder.latencies["add", Outcome.COMMITTED, False] = [2000, 2000]
    recorder.roll(101.0)
    progress = recorder.progress(101.0, 3)
    assert progress is not None
    assert (progress.number, progress.in_flight, progress.outcomes) == (1, 3, {Outcome.COMMITTED: 3})
    assert sum(progress.latency.values()) == 3
    assert recorder.progress(101.4, 3) is None
    recorder.roll(102.0)
    later = recorder.progress(102.0, 0)
    assert later is not None
    assert later.latency == {}


def test_a_window_that_is_given_up_ends_then() -> None:
    for now_s, window_s in ((100.5, 0.0), (101.75, 0.75), (110.0, 2.0)):
        recorder = _recorder()
        recorder.end_window(now_s)
        assert recorder.finish("hopeless").window_s == window_s
    assert _recorder().finish("").window_s == 2.0
