"""What holds up the interpreter is named by a timer that does without it."""

from __future__ import annotations

import faulthandler
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from styx.watchdog import held_interpreter

ARMED = """
import sys, time
from styx.watchdog import held_interpreter

held_interpreter.write_to(sys.stderr, 0.05)
held_interpreter.put_off()
"""
SPINS = f"""{ARMED}
def huge():
    # Nothing but C code until it is done, in which no other thread runs.
    return 3 ** 6_000_000

huge()
held_interpreter.put_away()
"""
STANDS = f"""{ARMED}
print("armed", flush=True)
sys.stdin.readline()
held_interpreter.put_away()
"""


@pytest.fixture
def unarmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_interpreter, "_where", [])


def test_the_line_that_holds_up_all_threads_is_written() -> None:
    done = subprocess.run([sys.executable, "-c", SPINS], capture_output=True, text=True, check=True)
    assert "in huge" in done.stderr


def test_a_process_that_was_stopped_writes_nothing() -> None:
    """As soon as it may go on its threads run, and a stack that changes cannot be written."""
    with subprocess.Popen(
        [sys.executable, "-c", STANDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "armed\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        process.send_signal(signal.SIGCONT)
        assert process.communicate("go on\n") == ("", "")
    assert process.returncode == 0


def test_the_signal_of_a_profiler_is_left_to_it(unarmed: None, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.signal(signal.SIGPROF, lambda *_: None)
    try:
        held_interpreter.write_to(sys.stderr, 0.05)
        assert not held_interpreter.is_of_ours()
    finally:
        signal.signal(signal.SIGPROF, before)


def test_nothing_is_armed_unless_somebody_asked_for_it(unarmed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "setitimer")
    held_interpreter.put_off()
    held_interpreter.put_away()


def test_a_file_that_is_closed_is_given_up(unarmed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    armed: list[float] = []
    monkeypatch.setattr(faulthandler, "register", lambda *_, **__: None)
    monkeypatch.setattr(signal, "setitimer", lambda _, seconds: armed.append(seconds))
    with (tmp_path / "stacks").open("w") as file:
        held_interpreter.write_to(file, 1.5)
        held_interpreter.put_off()
        assert armed == [1.5]
    held_interpreter.put_off()
    assert armed == [1.5, 0]
    held_interpreter.put_off()
    assert armed == [1.5, 0]
