"""Signals that tell a process to end are noticed at once, also while its main thread waits in C code."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from styx.testing.patience import PATIENCE_SECONDS
from styx.watchdog import ending


@pytest.fixture
def heard() -> Iterator[threading.Event]:
    """Set when the handler has run that was there before; the signal restarts system calls, as event loops want it."""
    event = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: event.set())
    signal.siginterrupt(signal.SIGUSR1, False)
    yield event
    signal.signal(signal.SIGUSR1, before)


def test_what_waits_in_c_code_hears_of_it_and_goes_on_waiting(heard: threading.Event) -> None:
    ending.notice([signal.SIGUSR1])
    reading, writing = os.pipe()
    seen: list[bool] = []

    def tell() -> None:
        heard.wait(0.05)  # most likely it reads by now; the verdict is the same if not
        os.kill(os.getpid(), signal.SIGUSR1)
        seen.append(heard.wait(PATIENCE_SECONDS))
        os.write(writing, b"x")

    telling = threading.Thread(target=tell)
    telling.start()
    assert os.read(reading, 1) == b"x"
    telling.join()
    os.close(reading)
    os.close(writing)
    assert seen == [True]
    assert ending.told() == signal.SIGUSR1
