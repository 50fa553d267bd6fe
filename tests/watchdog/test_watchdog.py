"""What the watchdog says and when, by a clock of its own; and what it does not take for a function that runs."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from styx.model.limits import CLOSED_PATIENCE, END_SECONDS, REPLAY_PATIENCE, Limits, alive_seconds_max
from styx.watchdog import ending
from styx.watchdog import watchdog as watchdog_module
from styx.watchdog.watchdog import LOOP_END_SECONDS, NAMED_AGAIN_SECONDS_MAX, HeldLoop, Watchdog
from styx.watchdog.watched import Watched
from styx.worker.events import Step
from styx.worker.invocation import Running
from tests.plain_form import plain_form

pytestmark = plain_form  # a compiled `Running` takes no stand-in for an invocation


class Ran:
    """As much of an invocation as is looked at."""

    def __init__(self, spec: Any, key: str) -> None:
        self._spec = spec
        self._key = key
        self._calls: list[None] = []  # what is in these is not looked at
        self._externals = 0
        self._env = SimpleNamespace(tid=4)


class Bench:
    """A watchdog of a worker that does what a test says; each `pass_s` is one look."""

    def __init__(self, seconds_max: float = 10.0) -> None:
        self.running = Running()
        self.turn = 0
        self.now_s = 0.0
        self.exits: list[int] = []
        self.busy: list[tuple[str, float]] = []
        self.ended: list[tuple[float, bool]] = []
        self.worker = SimpleNamespace(
            executor=SimpleNamespace(running=self.running, roots={}),
            n_slots=4,
            limits=Limits(function_seconds_max=seconds_max),
            patience=1,
            reached=Step.IDLE,
            generation=1,
            epoch=-1,
            recorded_until=-1,
        )
        watched = Watched(cast(Any, self.worker), cast(Any, self), threading.get_ident(), " --data-dir .styx")
        self.watchdog = Watchdog(
            watched,
            lambda name, seconds: self.busy.append((name, seconds)),
            lambda: self.now_s,
            self.exits.append,
        )
        self.watchdog._interruption = cast(Any, self)

    def interrupt(self, running: Running, invocation: Any, error: Exception, *, again: bool) -> bool:
        self.ended.append((round(self.now_s, 2), again))
        return True

    def runs(self, key: str = "a") -> Any:
        spec = SimpleNamespace(operator="account", name="spin")
        invocation = Ran(spec, key)
        self.running.invocation = cast(Any, invocation)
        self.turn |= 1
        return invocation

    def passes(self, seconds: float) -> None:
        for _ in range(round(seconds / self.watchdog.turn_s)):
            self.now_s += self.watchdog.turn_s
            self.watchdog.look()


def test_a_function_is_named_within_two_seconds_and_less_and_less_often(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(1000.0)
    bench.runs()
    bench.passes(2.0)
    assert "account.spin on 'a' has run for 1." in caplog.text
    assert "It is ended at 1000 s (Limits.function_seconds_max)" in caplog.text
    bench.passes(298.0)
    told = [record for record in caplog.records if "has run for" in record.message]
    assert len(told) <= 7 + 300 / NAMED_AGAIN_SECONDS_MAX
    bench.running.invocation = None
    bench.passes(0.25)
    assert "account.spin on 'a' has ended after" in caplog.text


def test_it_is_ended_at_its_limit_and_in_earnest_if_it_goes_on() -> None:
    bench = Bench(10.0)
    bench.runs()
    bench.passes(9.75)
    assert not bench.ended
    bench.passes(2.5)
    assert bench.ended[0] == (10.25, False)
    assert bench.ended[-1][1]
    assert bench.busy[-1][0] == "account.spin on 'a'"


def test_another_step_of_it_begins_anew() -> None:
    bench = Bench(1.0)
    bench.runs()
    for _ in range(20):
        bench.running.resumed += 1
        bench.passes(0.75)
    assert not bench.ended


def test_over_its_limit_it_is_told_how_its_request_is_set_aside(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.runs()
    bench.passes(9.0)
    assert "request" not in caplog.text
    bench.passes(60.0)
    assert "of transaction 4, a request of slot 3, which another worker owns" in caplog.text
    bench.worker.executor.roots[4] = SimpleNamespace(slot=3, offset=1041)
    bench.passes(60.0)
    assert "of the request 3:1041: if it never comes back, have that refused with" in caplog.text
    assert "`styx set-aside 3:1041 --data-dir .styx`" in caplog.text


def test_what_it_calls_is_no_sign_of_its_end() -> None:
    bench = Bench(1.0)
    invocation = bench.runs()
    for _ in range(20):
        invocation._calls.append(None)
        invocation._externals += 1
        bench.passes(0.25)
    assert bench.ended


def test_many_short_ones_in_one_pass_hold_up_the_event_loop_too() -> None:
    bench = Bench(10.0)
    for _ in range(20):
        bench.runs()
        bench.passes(0.25)
    assert len(bench.busy) == 19
    assert not bench.ended


def test_what_ends_with_its_pass_holds_up_nothing() -> None:
    bench = Bench(10.0)
    for _ in range(20):
        bench.turn += 2
        bench.runs()
        bench.passes(0.25)
    assert not bench.busy


def test_a_process_that_was_stopped_has_run_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(10.0)
    bench.runs()
    bench.passes(0.5)
    bench.now_s += 3600.0
    bench.passes(0.25)
    assert not bench.ended
    assert "account.spin on 'a' has run" not in caplog.text


def test_what_holds_up_the_watchdog_too_is_told_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.runs()
    bench.passes(0.5)
    bench.now_s += 1.5
    bench.passes(0.25)
    assert not caplog.text
    bench.now_s += 7.25
    bench.passes(0.25)
    assert "no thread of Python ran for 7.5 s, and account.spin on 'a' runs: C code" in caplog.text


def test_a_replay_has_more_patience() -> None:
    bench = Bench(1.0)
    bench.worker.patience = 3
    bench.runs()
    bench.passes(3.0)
    assert not bench.ended
    bench.running.harmless = True
    bench.passes(0.5)
    assert bench.ended, "what no outcome depends on needs no patience"


def test_the_limit_is_the_one_that_the_core_runs_with() -> None:
    bench = Bench(10.0)
    bench.runs()
    bench.worker.limits = Limits(function_seconds_max=1.0)
    bench.passes(1.5)
    assert bench.ended
    bench.runs()
    bench.worker.limits = Limits(function_seconds_max=10.0)
    ended = len(bench.ended)
    bench.passes(5.0)
    assert len(bench.ended) == ended


def test_what_a_debugger_holds_up_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(1.0)
    bench.runs()
    monkeypatch.setattr(watchdog_module, "DEBUGGERS", frozenset({__name__.partition(".")[0]}))
    bench.passes(5.0)
    assert not bench.ended


def test_what_the_engine_does_itself_is_told_as_well(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.turn = 7
    bench.passes(1.5)
    assert "the engine has been held up for 1." in caplog.text
    bench.turn = 8
    bench.passes(100.0)
    assert len(caplog.records) == 2


def test_who_stands_by_starts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.worker.reached, bench.worker.generation = Step.LOADING, -1
    bench.passes(60.0)
    assert not caplog.records


def test_a_long_start_says_what_it_does(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench = Bench()
    bench.worker.reached = Step.LOADING
    bench.passes(2.5)
    assert "since 2 s: the newest snapshot and the log behind it are being read" in caplog.text
    bench.worker.reached, bench.worker.epoch, bench.worker.recorded_until = Step.EXECUTING, 3, 9
    bench.passes(2.5)
    assert "recorded epochs are run again, 4 to 9" in caplog.text
    before = len(caplog.records)
    bench.worker.epoch = 9
    bench.passes(60.0)
    assert len(caplog.records) == before


LIMITS_S = [0.05, 10.0, 60.0, 3600.0]


@pytest.mark.parametrize("limit_s", LIMITS_S)
@pytest.mark.parametrize("patience", [1, REPLAY_PATIENCE, CLOSED_PATIENCE])
def test_a_worker_is_alive_while_a_function_may_run_and_is_not_when_it_is_stuck_for_good(
    limit_s: float, patience: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(limit_s)
    bench.worker.patience = patience
    bench.runs()
    known_s = alive_seconds_max(limit_s * patience)
    bench.passes(known_s + 100 * bench.watchdog.turn_s)
    # All the time without a gap, up to the known end, and not once behind it.
    times = [seconds for _, seconds in bench.busy]
    assert max(after - before for before, after in pairwise(times)) <= 2 * bench.watchdog.turn_s + 1e-6
    assert times[-1] == pytest.approx(known_s, abs=2 * bench.watchdog.turn_s)
    assert times[-1] > limit_s * patience
    assert sum("gives no sign of life" in record.message for record in caplog.records) == 1
    assert bench.ended, "it was interrupted long before"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    signals: list[tuple[int, float]] = []
    monkeypatch.setattr(ending, "_told", signals)
    return signals


@pytest.mark.parametrize("limit_s", LIMITS_S)
def test_told_to_end_a_function_may_use_its_limit(
    limit_s: float, told: list[tuple[int, float]], caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(limit_s)
    bench.runs()
    bench.passes(limit_s / 2)
    told.append((15, 0.0))
    turn_s = bench.watchdog.turn_s
    bench.passes(limit_s / 2 - turn_s)
    assert not bench.exits
    bench.passes(END_SECONDS)
    assert "told to end: first account.spin on 'a' may end, within" in caplog.text
    assert bench.ended, "the watchdog has cut it"
    assert not bench.exits
    bench.passes(3 * turn_s)
    assert bench.exits[0] == 143, "it did not come back from C"
    assert "told to end, but what runs" in caplog.text


def test_told_to_end_what_is_over_its_limit_gets_two_seconds(told: list[tuple[int, float]]) -> None:
    bench = Bench(10.0)
    bench.runs()
    bench.passes(50.0)
    told.append((15, 0.0))
    bench.passes(END_SECONDS - 0.5)
    assert not bench.exits
    bench.passes(1.0)
    assert bench.exits[0] == 143


def test_told_to_end_many_functions_in_one_pass_get_one_limit(told: list[tuple[int, float]]) -> None:
    bench = Bench(10.0)
    told.append((15, 0.0))
    for _ in range(2):
        bench.runs()
        bench.passes(5.0)
    assert not bench.exits
    bench.runs()
    bench.passes(END_SECONDS + 1.0)
    assert bench.exits[0] == 143


def test_told_to_end_a_replay_gets_one_limit_too(told: list[tuple[int, float]]) -> None:
    bench = Bench(10.0)
    bench.worker.patience = CLOSED_PATIENCE
    bench.runs()
    told.append((15, 0.0))
    bench.passes(10.0 + END_SECONDS - 0.5)
    assert not bench.exits
    bench.passes(1.5)
    assert bench.exits[0] == 143


def test_told_to_end_the_event_loop_does_the_rest_if_it_turns(told: list[tuple[int, float]]) -> None:
    bench = Bench(10.0)
    told.append((15, 0.0))
    for _ in range(100):
        bench.running.invocation, bench.turn = None, bench.turn + 2 | 1
        bench.passes(0.25)
    bench.running.invocation, bench.turn = None, bench.turn + 1
    bench.passes(5.0)
    assert not bench.exits


@pytest.mark.parametrize("between_s", [0.0, 0.05, 0.2, 60.0])
def test_told_twice_it_ends_at_once(between_s: float, told: list[tuple[int, float]]) -> None:
    bench = Bench(1000.0)
    bench.runs()
    told.append((15, 5.0))
    bench.passes(1.0)
    assert not bench.exits
    told.append((2, 5.0 + between_s))
    bench.passes(0.25)
    again = between_s > ending.SAME_SECONDS  # else it is one order, sent to the group and to the process
    assert bench.exits == ([130] if again else [])


@pytest.mark.parametrize("limit_s", LIMITS_S)
def test_a_signal_behind_the_words_is_a_second_one_however_soon(
    limit_s: float, told: list[tuple[int, float]], caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(limit_s)
    turn_s = bench.watchdog.turn_s
    bench.runs()
    bench.passes(2 * turn_s)
    told.append((15, bench.now_s + turn_s))  # at the very look
    while "a second signal ends this process at once" not in caplog.text:
        bench.passes(turn_s)
    told.append((2, bench.now_s))
    bench.passes(turn_s)
    assert bench.exits == [130]


def held_loop(bench: Bench) -> None:
    bench.watchdog._loop = HeldLoop(lambda answer: None)


def test_what_holds_up_the_loop_outside_of_passes_is_named(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    held_loop(bench)
    bench.passes(1.5)
    assert not caplog.records
    bench.passes(1.5)
    [record] = caplog.records
    assert re.search(r"event loop has been held up for 2\.\d s at .*test_watchdog.py:\d+ in", record.getMessage())
    bench.passes(12.0)
    assert len(caplog.records) == 3, "after twice as long each time"


def test_told_to_end_a_loop_that_does_not_turn_is_not_waited_for_long(told: list[tuple[int, float]]) -> None:
    bench = Bench()
    held_loop(bench)
    told.append((15, 0.0))
    bench.passes(LOOP_END_SECONDS - 1.0)
    assert not bench.exits
    bench.passes(1.5)
    assert bench.exits[0] == 143


def test_told_to_end_a_loop_that_turns_ends_by_itself(told: list[tuple[int, float]]) -> None:
    bench = Bench()
    bench.watchdog._loop = HeldLoop(lambda answer: answer())
    told.append((15, 0.0))
    bench.passes(60.0)
    assert not bench.exits


def test_a_loop_that_turns_is_not_held_up() -> None:
    asked: list[Callable[[], None]] = []
    loop = HeldLoop(asked.append)
    for _ in range(5):
        assert loop.look(1.0, False) == 0
        asked.pop()()
    assert not asked


def test_seconds_without_an_answer_are_counted_outside_of_passes() -> None:
    asked: list[Callable[[], None]] = []
    loop = HeldLoop(asked.append)
    told = [loop.look(0.5, within) for within in (False, False, False, True, False, False)]
    assert told == [0, 0.5, 1.0, 0, 0.5, 1.0]
    [answer] = asked
    answer()
    assert loop.look(0.5, False) == 0
    assert len(asked) == 2


def test_a_loop_that_is_closed_is_let_be() -> None:
    def closed(callback: Callable[[], None]) -> None:
        raise RuntimeError("Event loop is closed")

    loop = HeldLoop(closed)
    assert [loop.look(1.0, False) for _ in range(3)] == [0, 0, 0]
