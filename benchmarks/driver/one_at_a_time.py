"""One load test at a time on a machine, and none that leaves processes and folders behind.

Two load tests at once measure each other. So each command that measures under load holds a lock of the machine, and
waits while another one has it. A command that such a command starts does not wait for its own parent. SIGTERM and
SIGHUP end a command as Ctrl-C does: what it has started is stopped and removed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

from styx.cli.serving import run_loop
from styx.errors import ConfigurationError

HELD_VARIABLE: Final = "STYX_LOAD_TEST"
"""In the environment of what runs under the lock."""
FILE_VARIABLE: Final = "STYX_LOAD_TEST_LOCK"
"""Names another file than `PLACE` for the lock."""
PLACE: Final = Path(tempfile.gettempdir(), "styx-load-test.lock")
WAIT_SECONDS_MAX: Final = 6 * 3600.0
POLL_SECONDS: Final = 0.2
ENDING: Final = (signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")


def run_load(main: Coroutine[Any, Any, T]) -> T:
    """Runs a `load_test`, and raises what it and `main` raise."""
    try:
        with load_test():
            return run_loop(main)
    finally:
        main.close()


@contextmanager
def load_test() -> Iterator[None]:
    """The block puts load on this machine, alone and to an orderly end. Raises `ConfigurationError` if another one
    never ends, and `KeyboardInterrupt` after Ctrl-C, SIGTERM or SIGHUP.
    """
    with ends_in_order(), alone():
        yield


@contextmanager
def ends_in_order() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP do once what Ctrl-C does; a second one does not disturb the cleaning up."""
    told = False

    def end(_: int, frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            # An event loop has a handler of its own, which lets its tasks end.
            interrupt = signal.getsignal(signal.SIGINT)
            if not callable(interrupt):
                raise KeyboardInterrupt
            interrupt(signal.SIGINT, frame)

    before = {number: signal.signal(number, end) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def alone(wait_s: float = WAIT_SECONDS_MAX) -> Iterator[None]:
    """Within the block this is the only load test of the machine. Raises `ConfigurationError` after `wait_s`."""
    if HELD_VARIABLE in os.environ:
        yield
        return
    place = Path(os.environ.get(FILE_VARIABLE) or PLACE)
    try:
        file = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ConfigurationError(
            f"{place}, which load tests take turns with, cannot be opened: {error.strerror}; {FILE_VARIABLE} names "
            "another file"
        ) from None
    try:
        _take(file, place, wait_s)
        os.environ[HELD_VARIABLE] = str(os.getpid())
        yield
    finally:
        os.environ.pop(HELD_VARIABLE, None)
        os.close(file)


def _take(file: int, place: Path, wait_s: float) -> None:
    until_s, told = time.monotonic() + wait_s, False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}: {Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}"[:200].encode(), 0)
            return
        holder = place.read_text("utf-8", "replace")
        if time.monotonic() >= until_s:
            raise ConfigurationError(f"another load test has run for {wait_s:g} s on this machine, {holder}")
        if not told:
            print(f"another load test runs on this machine, {holder}: waiting for its end", file=sys.stderr, flush=True)
            told = True
        time.sleep(POLL_SECONDS)
