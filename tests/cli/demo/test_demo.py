"""`styx demo` from start to end, and what it does when something is wrong."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from styx.cli.demo.audit import Check
from styx.cli.demo.engine_process import EngineProcess
from styx.cli.demo.scenario import Demo, Result
from styx.cli.demo.senders import Journal
from styx.cli.exit_codes import CommandFailed
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.conftest import Styx


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made, so that leftovers show."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def result(*, holds: bool) -> Result:
    return Result(Journal(), [Check("money", holds, "counted")], 100, 1.0, [0.5])


@pytest.mark.parametrize(("holds", "status"), [(True, 0), (False, 1)])
def test_the_audit_decides(
    styx: Styx, temporary: Path, monkeypatch: pytest.MonkeyPatch, holds: bool, status: int
) -> None:
    async def run(self: Demo) -> Result:
        return result(holds=holds)

    monkeypatch.setattr(Demo, "run", run)
    ran = styx("demo")
    assert ran.status == status
    assert ("the audit holds" if holds else "does NOT hold") in ran.out.splitlines()[-1]
    left = list(temporary.iterdir())
    assert len(left) == status
    assert all(str(path) in ran.err for path in left)


@pytest.mark.parametrize(
    ("error", "status", "kept"), [(CommandFailed("no reply"), 1, True), (KeyboardInterrupt(), 130, False)]
)
def test_trouble(
    styx: Styx, temporary: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, kept: bool
) -> None:
    async def run(self: Demo) -> Any:
        raise error

    monkeypatch.setattr(Demo, "run", run)
    assert styx("demo").status == status
    assert bool(list(temporary.iterdir())) is kept


def test_directory_that_was_asked_for_stays(styx: Styx, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(self: Demo) -> Result:
        return result(holds=True)

    monkeypatch.setattr(Demo, "run", run)
    wanted = temporary / "a" / "b"
    assert styx("demo", "--data-dir", str(wanted)).status == 0
    (wanted / "log.db").touch()
    assert styx("demo", "--data-dir", str(wanted)).status == 2


@pytest.mark.slow
def test_demo_in_a_pipe(temporary: Path) -> None:
    words = [sys.executable, "-m", "styx", "demo", "--seconds", "3", "--accounts", "100", "--crashes", "2"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    assert "\x1b" not in ran.stdout
    names = [line.split(" ")[0] for line in ran.stdout.splitlines() if not line.startswith(" ")]
    assert [name for name in names if name != "ok"] == [
        *("engine", "accounts", "load", "crash", "recovery", "crash", "recovery", "stop", "audit", "sent", "speed"),
        "verdict",
    ]
    assert names.count("ok") == 5
    sent = re.search(r"([\d,]+) committed, ([\d,]+) aborted .*; ([\d,]+) sent again", ran.stdout)
    assert sent is not None
    assert all(int(number.replace(",", "")) > 0 for number in sent.groups()), (
        "no commits, no aborts, or no kill under load"
    )
    assert list(temporary.iterdir()) == []


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.slow
@pytest.mark.anyio
async def test_engine_process_that_cannot_start(temporary: Path) -> None:
    (temporary / "log.db").mkdir()
    with pytest.raises(CommandFailed, match=r"did not start\.\nIts last words:\n"):
        await EngineProcess.start(temporary, 2.0)


@pytest.mark.slow
@pytest.mark.anyio
async def test_engine_process_that_ends_by_itself(temporary: Path) -> None:
    engine = await EngineProcess.start(temporary, 2.0)
    assert engine.failure() is None
    os.kill(engine.pid, signal.SIGKILL)
    await engine.gone()
    failure = engine.failure()
    assert failure is not None
    assert "ended with exit code -9.\nIt said nothing." in failure.message
    await engine.end()


@pytest.mark.slow
def test_engine_process_ends_with_its_parent(temporary: Path) -> None:
    words = [sys.executable, "-m", "styx.cli.demo.engine_process", str(temporary), "2"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert b"url" in process.stdout.readline()
        process.stdin.close()
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
