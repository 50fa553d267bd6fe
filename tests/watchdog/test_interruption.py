"""Functions on another thread are ended, whatever they catch, and nothing but them."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from styx.errors import FunctionTooLong
from styx.watchdog import interruption as interruption_module
from styx.watchdog.interruption import Interrupted, Interruption
from styx.worker.invocation import Invocation, Running
from tests.plain_form import plain_form

pytestmark = plain_form  # a compiled `Running` takes no stand-in for an invocation


class Victim:
    """As much of an invocation as is looked at."""

    _doom: BaseException | None = None


def run(function: Callable[[], object], running: Running, invocation: Victim) -> BaseException | None:
    """As the engine runs a function: what it raised."""
    try:
        running.invocation = cast(Invocation, invocation)
        function()
        running.invocation = None
        if invocation._doom is not None:
            raise LookupError("it has returned")
    except BaseException as error:  # noqa: BLE001 - a function raises what it likes
        running.invocation = None
        if invocation._doom is not None:
            try:
                running.withdraw()
            except BaseException:  # noqa: BLE001 - the interruption itself
                pass
        return error
    return None


def endless() -> None:
    while True:
        pass


def catches_everything() -> None:
    while True:
        try:
            while True:
                pass
        except BaseException:  # noqa: BLE001 - what a careless author writes
            continue


def catches_and_tidies_up() -> None:
    while True:
        try:
            try:
                for number in range(10**6):
                    str(number)
            finally:
                str(1)
        except BaseException as error:  # noqa: BLE001 - as above
            str(error)


def in_c() -> None:
    re.match("(a+)+$", "a" * 22 + "b")
    endless()


@pytest.fixture
def interruption() -> Interruption:
    return Interruption(threading.get_ident())


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("function", [endless, catches_everything, catches_and_tidies_up, in_c])
def test_it_ends(interruption: Interruption, function: Callable[[], object]) -> None:
    running, victim, over = Running(), Victim(), threading.Event()

    def watch() -> None:
        attempt = 0
        while not over.wait(0.01):
            invocation = running.invocation
            if invocation is not None:
                interruption.interrupt(running, invocation, FunctionTooLong("now"), again=attempt > 3)
                attempt += 1

    watching = threading.Thread(target=watch)
    watching.start()
    error = run(function, running, victim)
    for number in range(50_000):  # the engine's own code: nothing happens to it
        str(number)
    over.set()
    watching.join()
    assert isinstance(error, Interrupted)
    assert isinstance(victim._doom, FunctionTooLong)
    assert running.cut


def test_what_does_not_run_is_left_alone(interruption: Interruption) -> None:
    running, victim = Running(), cast(Any, Victim())
    assert not interruption.interrupt(running, victim, FunctionTooLong("now"), again=False)
    assert victim._doom is None
    assert not running.cut


def test_nothing_happens_behind_a_function_that_ends_at_that_moment(
    interruption: Interruption, quick_switches: None
) -> None:
    """Short functions, interrupted all the time: each ends doomed or well, and what runs between them is not met."""
    running, over = Running(), threading.Event()

    def watch() -> None:
        again = False
        while not over.is_set():
            invocation = running.invocation
            if invocation is not None:
                interruption.interrupt(running, invocation, FunctionTooLong("now"), again=again)
                again = not again

    def short() -> None:
        for number in range(30):
            str(number)

    watching = threading.Thread(target=watch)
    watching.start()
    met = 0
    try:
        until_s = time.monotonic() + 1.0
        while time.monotonic() < until_s:
            victim = Victim()
            error = run(short, running, victim)
            met += victim._doom is not None
            assert (error is not None) == (victim._doom is not None)
    finally:
        over.set()
        watching.join()
    assert met


def test_what_doomed_it_before_is_freed_behind_the_order(
    interruption: Interruption, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its finalizer does could let the function end in between, and the interruption meet the engine."""
    order: list[str] = []

    class Earlier(Exception):
        def __del__(self) -> None:
            order.append("freed")

    monkeypatch.setattr(interruption_module, "_order", lambda *_: order.append("ordered"))
    running, victim = Running(), Victim()
    victim._doom = Earlier()
    running.invocation = cast(Invocation, victim)
    assert interruption.interrupt(running, cast(Invocation, victim), FunctionTooLong("now"), again=False)
    assert order == ["ordered", "freed"]
