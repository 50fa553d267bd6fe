"""A thread that names the code that holds up an engine, and interrupts a function that runs longer than the
deployment's limit. And a second watch (`HeldLoop`): whether the event loop turns.

It samples which function runs (`Running`) a few times a second, so that a function costs only the recording of its
name. Time is counted in the thread's own turns, so that time in which the process was stopped, or the machine
slept, does not count. A function inside C code (`time.sleep`) is named, and is interrupted when the C code returns to
Python. C code that lets no other thread run holds up the watchdog as well: see `styx.watchdog.held_interpreter`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from styx.errors import FunctionTooLong
from styx.model.limits import END_SECONDS, alive_seconds_max, end_seconds_max
from styx.model.user_frames import UserFrames
from styx.values.codec import shown
from styx.watchdog import ending, held_interpreter
from styx.watchdog.interruption import Interruption
from styx.watchdog.watched import Watched, WatchedCheck
from styx.worker.invocation import Invocation

TURN_SECONDS: Final = 0.25
"""The interval of looks, unless functions may run for only a few of these."""
NAMED_SECONDS: Final = 1.0
"""A function that runs for longer is named; again after twice as long each time."""
NAMED_AGAIN_SECONDS_MAX: Final = 60.0
"""The longest interval between two of these."""
HELD_UP_SECONDS: Final = 2.0
"""Without a turn of the watchdog's own thread, afterwards that is told; or of the event loop outside of passes."""
LOOP_END_SECONDS: Final = 10.0
"""A process that was told to end waits so long for code that holds up the event loop outside of passes."""
INSIST_SECONDS: Final = 1.0
"""A function that goes on for so long behind its interruption, whatever it caught, is ended in earnest."""
DEBUGGERS: Final = frozenset({"bdb", "pdb", "pydevd", "debugpy", "_pydevd_bundle"})
"""Modules in whose frames a person thinks: what they hold up is not ended."""
DEPTH_MAX: Final = 10_000
"""Frames looked at."""

_log = logging.getLogger("styx.watchdog")


class Watchdog:
    """`busy` is told what runs, and for how many seconds, at each turn in which a function of the app's runs and the
    event loop has not turned since the one before; but not of what is stuck for good. `clock` gives seconds.
    """

    def __init__(
        self,
        watched: Watched | WatchedCheck,
        busy: Callable[[str, float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        exit_now: Callable[[int], object] = os._exit,
    ) -> None:
        self._watched = watched
        self._busy = busy
        self._exit_now = exit_now
        self._held_s = 0.0
        self._stuck_s = 0.0
        self._silent = False
        self._waits = False
        self._clock = clock
        self._interruption = Interruption(watched.thread_id)
        self._frames = UserFrames()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._before_s = clock()
        self._turn = 0
        self._seen: tuple[Any, ...] = ()
        self._seconds = 0.0
        self._told_s = 0.0
        self._error: FunctionTooLong | None = None
        self._error_s = 0.0
        self._name = ""
        self._doing_s = 0.0
        self._loop: HeldLoop | None = None
        self._loop_told_s = 0.0

    @property
    def seconds_max(self) -> float:
        """The core's present limit: recorded epochs run within the limits that they were recorded with."""
        return self._watched.limits.function_seconds_max

    @property
    def turn_s(self) -> float:
        """The interval of looks, in seconds."""
        return min(TURN_SECONDS, self.seconds_max / 4)

    def start(self, call_soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        """Watches until `stop`; the process may end meanwhile. `call_soon` of the event loop: if the process is this
        package's own, what holds up the loop outside of passes is named, too.
        """
        if call_soon is not None and held_interpreter.is_of_ours():
            self._loop = HeldLoop(call_soon)
        self._thread = threading.Thread(target=self._run, name="styx-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Looks no more; from any thread."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self.turn_s):
            try:
                held_interpreter.put_off()
                self.look()
            except Exception:  # noqa: BLE001 - what is watched goes on changing; one look less is no loss
                _log.debug("the watchdog's look failed", exc_info=True)
        held_interpreter.put_away()

    def look(self) -> None:
        """One turn."""
        now_s = self._clock()
        held_s = now_s - self._before_s
        passed_s, self._before_s = min(held_s, 2 * self.turn_s), now_s
        watched = self._watched
        running = watched.running
        if held_s >= HELD_UP_SECONDS:
            self._was_held_up(held_s, running.invocation)
        invocation, turn = running.invocation, watched.turns.turn
        same_pass, self._turn = turn == self._turn and turn % 2 == 1, turn
        if invocation is not None:
            # What it calls is no sign that it ends; that it came back to the engine, which went on with it, is.
            seen: tuple[Any, ...] = (invocation, running.resumed)
        elif turn % 2:
            seen = (turn,)
        else:
            seen = ()
        if not seen or seen != self._seen:
            self._began(seen)
            self._recovers(passed_s)
        else:
            self._seconds += passed_s
            wait_s = min(self._told_s, NAMED_AGAIN_SECONDS_MAX) or NAMED_SECONDS
            if self._seconds >= self._told_s + wait_s:
                self._tell(invocation)
        self._hold_up(invocation, same_pass)
        self._told_to_end(invocation, passed_s, same_pass)
        if self._loop is not None:
            self._loop_held(self._loop.look(passed_s, invocation is not None or turn % 2 == 1))
        if invocation is not None:
            self._limit(invocation)

    def _was_held_up(self, seconds: float, invocation: Invocation | None) -> None:
        _log.warning(
            "no thread of Python ran for %.1f s%s: C code that lets no other run, such as a regular expression or a "
            "huge number, held up all of them, or the process was stopped",
            seconds,
            "" if invocation is None else f", and {name_of(invocation)} runs",
        )

    def _loop_held(self, seconds: float) -> None:
        """Nothing here can end what runs outside of passes: to the interpreter it is the engine's own."""
        if not seconds:
            self._loop_told_s = 0.0
            return
        number = ending.told()
        if number is not None and (seconds >= LOOP_END_SECONDS or ending.told_again()):
            self._end(number)
        if seconds >= max(HELD_UP_SECONDS, min(2 * self._loop_told_s, self._loop_told_s + NAMED_AGAIN_SECONDS_MAX)):
            self._loop_told_s = seconds
            frame = sys._current_frames().get(self._watched.thread_id)
            _log.warning(
                "the event loop has been held up for %.1f s%s, which no function awaits: the end of an asynchronous "
                "generator, say, or a task. Nothing else runs meanwhile, and nothing here can end it",
                seconds,
                self._place(frame),
            )

    def _hold_up(self, invocation: Invocation | None, same_pass: bool) -> None:
        """Short functions hold up the event loop as well, if there are many in one pass."""
        if invocation is None or not same_pass or self._busy is None:
            return
        if self._seconds <= alive_seconds_max(self._limit_s(invocation)):
            self._busy(name_of(invocation), self._seconds)
        elif not self._silent:
            self._silent = True
            _log.error(
                "%s has held up this worker for %.0f s, and nothing here can end it: from now on the worker gives no "
                "sign of life, and others take over its slots. End this process, and start it again",
                name_of(invocation),
                self._seconds,
            )

    def _began(self, seen: tuple[Any, ...]) -> None:
        if self._told_s:
            _log.warning("%s has ended after %.1f s", self._name, self._seconds)
        self._seen, self._seconds, self._told_s, self._error = seen, 0.0, 0.0, None
        self._stuck_s, self._silent = 0.0, False

    def _told_to_end(self, invocation: Invocation | None, passed_s: float, same_pass: bool) -> None:
        """A function may use its limit; what goes on behind it, or the whole pass for as long, is waited for no more.
        Whatever else is to be done at an end the event loop does, as soon as it turns.
        """
        number = ending.told()
        if number is None or not same_pass:
            self._held_s = 0.0
            return
        before_s, self._held_s = self._held_s, self._held_s + passed_s
        left_s = end_seconds_max(self._watched.limits) - self._held_s
        if invocation is not None:
            over_s = self._seconds - self._limit_s(invocation)
            self._stuck_s += passed_s if over_s >= 0 else 0.0
            left_s = min(left_s, END_SECONDS - self._stuck_s if over_s >= 0 else END_SECONDS - over_s)
        if left_s <= 0 or ending.told_again():
            self._end(number)
        elif invocation is not None and not self._waits and before_s > ending.SAME_SECONDS:
            self._waits = True  # not earlier: a signal behind these words is never taken for the same order
            _log.warning(
                "told to end: first %s may end, within %.1f s; a second signal ends this process at once",
                name_of(invocation),
                left_s,
            )

    def _end(self, number: int) -> None:
        frame = sys._current_frames().get(self._watched.thread_id)
        _log.error(
            "told to end, but what runs%s has not ended: this process ends without it, as in a crash. What was "
            "answered is kept, and what was not goes on at the next start",
            self._place(frame),
        )
        self._exit_now(128 + number)

    def _recovers(self, passed_s: float) -> None:
        doing = self._watched.recovery()
        if doing is None:
            self._doing_s = 0.0
            return
        before, self._doing_s = self._doing_s, self._doing_s + passed_s
        # After two seconds, and then each time that it has taken half as long again.
        due, at = False, 2.0
        while at <= self._doing_s:
            due, at = due or at > before, at + min(NAMED_AGAIN_SECONDS_MAX, at * 0.5)
        if due:
            _log.warning("nothing is served yet, since %.0f s: %s", self._doing_s, doing)

    # What runs -----------------------------------------------------------------------------------------------

    def _tell(self, invocation: Invocation | None) -> None:
        self._told_s = self._seconds
        frame = sys._current_frames().get(self._watched.thread_id)
        place = self._place(frame)
        if invocation is None:
            self._name = "what the engine does"
            _log.warning("the engine has been held up for %.1f s%s", self._seconds, place)
            return
        self._name = name_of(invocation)
        watched = self._watched
        limit_s = self._limit_s(invocation)
        over = self._seconds > limit_s + INSIST_SECONDS
        ends = "when it comes back from what holds it up" if self._seconds > limit_s else f"at {limit_s:g} s"
        if _debugged(frame):
            ends = "not, while a debugger is at work in it"
        _log.warning(
            "%s has run for %.1f s%s%s; nothing else runs meanwhile. It is ended %s (Limits.function_seconds_max), as "
            "FunctionTooLong%s",
            self._name,
            self._seconds,
            place,
            watched.replaying(),
            ends,
            watched.way_out(invocation) if over else "",
        )

    def _place(self, frame: FrameType | None, short: bool = False) -> str:
        """The app's line at which it stands, or whatever line there is; `short`: without the file's directory."""
        while frame is not None and not self._frames.is_own(frame.f_code):
            frame = frame.f_back
        if frame is None:
            return ""
        code = frame.f_code
        file = os.path.basename(code.co_filename) if short else code.co_filename
        return f" at {file}:{frame.f_lineno} in {code.co_qualname}"

    # The limit -----------------------------------------------------------------------------------------------

    def _limit_s(self, invocation: Invocation) -> float:
        watched = self._watched
        return self.seconds_max * (1 if watched.running.harmless else watched.patience)

    def _limit(self, invocation: Invocation) -> None:
        if self._seconds < self._limit_s(invocation):
            return
        frame = sys._current_frames().get(self._watched.thread_id)
        if _debugged(frame):
            return
        error = self._error
        if error is None:
            error = self._error = FunctionTooLong(
                f"{name_of(invocation)} ran for {self._seconds:.1f} s{self._place(frame, short=True)} without coming "
                f"back to the engine; the limit is {self.seconds_max:g} s (Limits.function_seconds_max)"
            )
            error.lines = tuple(at[:3] for at in self._frames.of_running(frame))
            self._error_s = self._seconds
        del frame
        again = self._seconds - self._error_s >= INSIST_SECONDS
        self._interruption.interrupt(self._watched.running, invocation, error, again=again)


def name_of(invocation: Invocation) -> str:
    """The function, its operator, and the entity that it runs on."""
    spec = invocation._spec
    return f"{spec.operator}.{spec.name} on {shown(invocation._key)}"


def _debugged(frame: FrameType | None) -> bool:
    for _ in range(DEPTH_MAX):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in DEBUGGERS:
            return True
        frame = frame.f_back
    return False


class HeldLoop:
    """Checks from another thread whether an event loop turns: code outside of passes can hold it up, too.

    Such code is the finalizer of an asynchronous generator that a function left, or a task that a function began. It
    can be named, but not interrupted. `call_soon` has the loop call something, from any thread.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._asked = False
        self._seconds = 0.0

    def look(self, passed_s: float, within_pass: bool) -> float:
        """For how many seconds it has not turned, those of passes left out; `passed_s` since the last look."""
        if not self._asked:
            self._asked, self._seconds = True, 0.0
            try:
                self._call_soon(self._answer)
            except RuntimeError:
                self._asked = False  # the loop is closed
            return 0.0
        self._seconds = 0.0 if within_pass else self._seconds + passed_s
        return self._seconds

    def _answer(self) -> None:
        self._asked = False
