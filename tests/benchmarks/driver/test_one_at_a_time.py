"""Load tests keep out of each other's way, and end in order: real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.driver.one_at_a_time import FILE_VARIABLE, HELD_VARIABLE, alone, ends_in_order
from styx.errors import ConfigurationError
from styx.testing.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[3]
HOLDS = """
import asyncio, signal, sys
from pathlib import Path
from benchmarks.driver.one_at_a_time import run_load

async def main():
    folder = Path(sys.argv[1])
    folder.mkdir()
    try:
        print("running", flush=True)
        await asyncio.sleep(1000)
    finally:
        await asyncio.sleep(0.05)
        folder.rmdir()

if sys.argv[2:]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what runs in the background
try:
    run_load(main())
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture(autouse=True)
def _own_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(HELD_VARIABLE)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "lock"))


@contextmanager
def holding(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A load test that runs, in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder), *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_a_load_test_has_made_is_gone_after_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with holding(tmp_path / "made") as process:
        process.send_signal(number)
        assert process.wait(PATIENCE_SECONDS) == 130
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_a_load_test_in_the_background_of_a_shell_ends_in_order_too(tmp_path: Path) -> None:
    with holding(tmp_path / "made", "in the background") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 130
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_a_load_test_waits_for_another_ones_end(tmp_path: Path) -> None:
    with holding(tmp_path / "made") as process:
        why = f"another load test has run for 0 s on this machine, {process.pid}:"
        with pytest.raises(ConfigurationError, match=why), alone(wait_s=0):
            raise AssertionError("two at once")
    # It was killed, and has left no file that anybody must remove.
    with alone(wait_s=PATIENCE_SECONDS):
        assert os.environ[HELD_VARIABLE] == str(os.getpid())


def test_a_command_that_a_load_test_starts_does_not_wait_for_it() -> None:
    with alone(), alone(wait_s=0):
        pass
    assert HELD_VARIABLE not in os.environ


def test_a_lock_that_cannot_be_opened_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "none" / "lock"))
    why = f"cannot be opened: .*{FILE_VARIABLE} names another file"
    with pytest.raises(ConfigurationError, match=why), alone():
        raise AssertionError("without a lock")


def test_a_second_signal_does_not_disturb_the_cleaning_up() -> None:
    def told_twice() -> Iterator[str]:
        with ends_in_order():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGTERM)
                cleaned.append(True)
        yield "went on"

    cleaned: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        next(told_twice())
    assert cleaned == [True]


def test_every_command_that_measures_under_load_takes_its_turn() -> None:
    for name in (
        "driver/command.py",
        "reference/line.py",
        "marketplace/comparison/command.py",
        "marketplace/faults/__main__.py",
        "marketplace/race/__main__.py",
        "travelling_numbers/__main__.py",
        "contention/__main__.py",
        "read_anomalies/__main__.py",
        "http_load.py",
        "http_cost.py",
        "front_cost.py",
        "replica_cost.py",
    ):
        text = (ROOT / "benchmarks" / name).read_text("utf-8")
        assert "run_load(" in text or "with load_test()" in text, name
