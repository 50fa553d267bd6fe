"""Signals that tell a process to end are noticed at once, also while its main thread waits in C code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
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
    deadline = time.monotonic() + PATIENCE_SECONDS
    while ending.told() is None and time.monotonic() < deadline:
        time.sleep(0.001)  # the handler and the thread that notices hear of the signal in either order
    assert ending.told() == signal.SIGUSR1


TAKEN_ELSEWHERE = """
import asyncio, os, signal, sys, threading, time
from styx.cli.serving import run_loop
from styx.watchdog import ending

def tell():
    time.sleep(0.1)  # the main thread waits by now; the verdict is the same if not
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    while ending.told() is None:
        time.sleep(0.01)
    os.write(1, str(ending.told_again()).encode())
    waits.set()

async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, loop_heard.set)
    ending.notice()
    threading.Thread(target=tell).start()
    waits.acquire_in_c()
    await loop_heard.wait()
    print("", ending.told_again(), "the loop as well")

class Waits:
    def __init__(self):
        self.reading, self.writing = os.pipe()
    def set(self):
        os.write(self.writing, b"x")
    def acquire_in_c(self):
        os.read(self.reading, 1)  # nothing of Python runs here meanwhile

waits, loop_heard = Waits(), asyncio.Event()
run_loop(main())
"""


def test_a_signal_that_another_thread_takes_is_noticed_while_the_main_thread_waits_in_c_code() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TAKEN_ELSEWHERE], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("False False the loop as well\n", "", 0)
