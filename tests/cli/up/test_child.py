"""A supervised process: when it is started again, given up, stopped; and ending with its supervisor."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from styx.cli.exit_codes import CommandFailed
from styx.cli.up.child import QUICK_DEATHS_MAX, STEADY_SECONDS, Child, Restarts, how_it_ended
from styx.testing.patience import PATIENCE_SECONDS


def test_pauses_grow_until_it_is_given_up() -> None:
    restarts = Restarts()
    pauses = [restarts.pause_after(1, 0.5) for _ in range(QUICK_DEATHS_MAX)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, None]


def test_who_lived_for_long_begins_anew() -> None:
    restarts = Restarts()
    for _ in range(3 * QUICK_DEATHS_MAX):
        assert restarts.pause_after(-9, 0.5) == 0.2
        assert restarts.pause_after(-9, 0.5) == 0.4
        assert restarts.pause_after(-9, STEADY_SECONDS) == 0.2
        restarts = Restarts()


def test_a_steady_life_forgets_quick_deaths() -> None:
    restarts = Restarts()
    for _ in range(QUICK_DEATHS_MAX - 1):
        restarts.pause_after(1, 0.0)
    assert restarts.pause_after(1, STEADY_SECONDS) == 0.2


def test_wrong_usage_is_given_up_at_once() -> None:
    assert Restarts().pause_after(2, 100.0) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [(1, "ended with exit code 1"), (-9, "was killed by SIGKILL"), (-63, "was killed by signal 63")],
)
def test_words(code: int, words: str) -> None:
    assert how_it_ended(code) == words


def test_a_child_has_as_long_without_its_supervisor_as_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function within its limit, which the supervisor would wait for, is not cut off."""
    given: list[dict[str, str]] = []

    async def start(*_: str, env: dict[str, str], **__: object) -> NoReturn:
        given.append(env)
        raise OSError("not started")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    child = Child("one", list, {"PATH": "/bin"}, print, lambda: None, stop_s=632.0)
    with pytest.raises(OSError, match="not started"):
        asyncio.run(child.run())
    assert given == [{"PATH": "/bin", "STYX_SUPERVISED": "632"}]


def child(words: list[str], said: list[str], stop_s: float = PATIENCE_SECONDS) -> Child:
    environment = {**os.environ, "STYX_SECRET": "0123456789abcdef"}
    return Child("one", lambda: words, environment, said.append, lambda: None, stop_s)


def gateway() -> list[str]:
    """Arguments of a process that waits for others for ever."""
    return ["gateway", "--log", "kafka://127.0.0.1:1", "--coordinator", "127.0.0.1:1", "--port", "0"]


async def other_pid(child: Child, than: int | None) -> int:
    while child.pid is None or child.pid == than:  # noqa: ASYNC110 - a process is no event source
        await asyncio.sleep(0.02)
    return child.pid


@pytest.mark.slow
def test_started_again_and_stopped() -> None:
    async def main() -> None:
        said: list[str] = []
        one = child(gateway(), said)
        running = asyncio.ensure_future(one.run())
        first = await other_pid(one, None)
        os.kill(first, signal.SIGKILL)
        second = await other_pid(one, first)
        await asyncio.sleep(0)
        assert said == ["one was killed by SIGKILL; it starts again in 0.2 s", f"one is process {second}"]
        await one.stop()
        await running
        assert one.pid is None

    asyncio.run(main())


@pytest.mark.slow
def test_killed_if_it_does_not_stop_in_its_time() -> None:
    async def main() -> None:
        said: list[str] = []
        one = child(gateway(), said, stop_s=0.2)
        running = asyncio.ensure_future(one.run())
        pid = await other_pid(one, None)
        os.kill(pid, signal.SIGSTOP)
        # Before it has stopped, SIGTERM could come first.
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        await one.stop()
        await running
        assert said == ["one does not stop within 0.2 s; it is killed"]

    asyncio.run(main())


@pytest.mark.slow
def test_given_up_for_wrong_usage(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandFailed, match="one ended with exit code 2 and is not started again"):
        asyncio.run(child(["gateway", "--log", "nonsense"], []).run())
    assert "'nonsense' is not a Kafka address" in capfd.readouterr().err


@pytest.mark.slow
def test_ends_with_its_supervisor() -> None:
    environment = {**os.environ, "STYX_SECRET": "0123456789abcdef", "STYX_SUPERVISED": str(PATIENCE_SECONDS)}
    with subprocess.Popen(
        [sys.executable, "-m", "styx", *gateway()], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stderr is not None
        assert b"listening" in process.stderr.readline()
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=PATIENCE_SECONDS) == 0


HELD_UP = """
import signal, time
from styx.cli.cluster_process import end_with_supervisor
signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))
end_with_supervisor()
while True:
    time.sleep(60)
"""


@pytest.mark.slow
def test_killed_if_it_outlives_its_supervisor_by_more_than_its_time() -> None:
    environment = {**os.environ, "STYX_SUPERVISED": "0.2"}
    with subprocess.Popen(
        [sys.executable, "-c", HELD_UP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, output) == (-signal.SIGKILL, b"told\n")


@pytest.mark.slow
def test_standard_input_means_nothing_without_a_supervisor(tmp_path: Path) -> None:
    environment = {**os.environ, "STYX_SECRET": "0123456789abcdef"}
    with subprocess.Popen(
        [sys.executable, "-m", "styx", *gateway()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stderr is not None
        assert b"listening" in process.stderr.readline()
        assert b"waiting for the coordinator" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
