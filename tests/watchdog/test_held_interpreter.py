"""What holds up the interpreter is named by a timer that does without it."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
from typing import Any

import pytest

from styx.watchdog import held_interpreter

SPINS = """
import sys
from pathlib import Path
from styx.watchdog import held_interpreter

held_interpreter.write_to(sys.stderr, 0.05)
held_interpreter.put_off()

def huge():
    # Nothing but C code until it is done, in which no other thread runs.
    return 3 ** 6_000_000

huge()
held_interpreter.put_away()
"""


def test_the_line_that_holds_up_all_threads_is_written() -> None:
    done = subprocess.run([sys.executable, "-c", SPINS], capture_output=True, text=True, check=True)
    assert "Timeout" in done.stderr
    assert "in huge" in done.stderr


def test_nothing_is_armed_unless_somebody_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_interpreter, "_where", [])
    monkeypatch.delattr(faulthandler, "dump_traceback_later")
    held_interpreter.put_off()
    held_interpreter.put_away()


def test_a_file_that_is_closed_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(held_interpreter, "_where", [])
    with (tmp_path / "stacks").open("w") as file:
        held_interpreter.write_to(file)
    held_interpreter.put_off()
    assert held_interpreter._where == []
