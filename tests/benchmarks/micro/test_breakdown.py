"""The breakdown of the engine's time: every nanosecond belongs to one step, and the engine does the same work."""

from __future__ import annotations

import time

import pytest

from benchmarks.micro import breakdown
from benchmarks.micro.breakdown import STEPS, Clock, run
from styx.worker import validation
from tests.plain_form import plain_form


def test_a_step_inside_of_another_counts_for_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr(breakdown, "thread_time_ns", lambda: now[0])

    def takes(nanoseconds: int) -> None:
        now[0] += nanoseconds

    clock = Clock()
    inner = clock.around("commit", lambda: takes(5))

    def outer() -> None:
        takes(1)
        inner()
        takes(2)
        inner()

    clock.around("reply", outer)()
    assert {step: spent for step, spent in clock.spent.items() if spent} == {"commit": 10, "reply": 3}


@plain_form
@pytest.mark.parametrize("keys", [1_000, 20])
def test_all_steps_together_are_the_whole_and_nothing_stays_watched(keys: int) -> None:
    before = validation.conflicts
    started = time.thread_time()
    spent = run(keys, 300)
    took_us = (time.thread_time() - started) * 1e6
    assert validation.conflicts is before
    assert spent.keys() == STEPS.keys()
    assert all(value >= 0 for value in spent.values())
    assert 0 < sum(spent.values()) * 300 <= took_us
    assert spent["execute"] > 0
    assert (spent["lock phase"] > 0) == (keys == 20) or keys == 1_000
