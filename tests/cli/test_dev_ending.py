"""`styx dev` told to end while a function holds it up: that may use its limit, and a second signal waits for nothing.

Nothing that was answered is lost, and the next start goes on with what was not.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import styx
from styx.errors import TransactionAborted
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.served import STYX
from tests.cli.test_dev_process import Dev

pytestmark = pytest.mark.slow
APP = """
import time
from pathlib import Path
from styx import App, Context, Operator

counter = Operator("counter")

@counter.register
async def add(ctx: Context) -> int:
    total = await ctx.get(0) + 1
    await ctx.put(total)
    return total

@counter.register
async def spin(ctx: Context) -> None:
    Path("began").touch()
    while Path("held").exists():
        pass

@counter.register
async def doze(ctx: Context) -> None:
    Path("began").touch()
    if Path("held").exists():
        time.sleep(100_000)

app = App("bank", operators=[counter])
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank.py").write_text(APP)
    (tmp_path / "held").touch()
    return tmp_path


class Held:
    """A `styx dev` that a function holds up; `outcome` is its request's, once that is answered."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.dev = Dev(process)
        self.outcome: object = None
        with styx.connect_sync(self.dev.url) as client:
            assert client.call("counter", "a", "add") == 1
        self._thread = threading.Thread(target=self._call)

    def _call(self) -> None:
        try:
            with styx.connect_sync(self.dev.url) as client:
                self.outcome = client.call("counter", "a", self.function, timeout=PATIENCE_SECONDS)
        except Exception as error:  # noqa: BLE001 - it is looked at
            self.outcome = error

    def hold(self, function: str) -> None:
        self.function = function
        self._thread.start()
        until(Path("began"))

    def ended(self) -> int:
        status = self.dev.process.wait(PATIENCE_SECONDS)
        self._thread.join()
        return status


def until(path: Path, words: str = "") -> None:
    while not path.exists() or words not in path.read_text():
        time.sleep(0.01)


@contextmanager
def held(function: str, limit_s: float, *options: str) -> Iterator[Held]:
    words = [*STYX, "dev", "bank:app", "--port", "0", "--quiet", "--no-check", *options]
    with (
        Path("err.txt").open("w") as err,
        subprocess.Popen(
            [*words, "--function-seconds-max", str(limit_s)], stdout=subprocess.PIPE, stderr=err, text=True
        ) as process,
    ):
        try:
            made = Held(process)
            made.hold(function)
            yield made
        finally:
            process.kill()


def goes_on() -> None:
    """The next start: what was answered is there, and what was not is run now."""
    Path("held").unlink(missing_ok=True)
    words = [*STYX, "dev", "bank:app", "--port", "0", "--quiet", "--no-check"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            served = Dev(process)
            with styx.connect_sync(served.url) as client:
                assert client.call("counter", "a", "add") == 2
            assert served.end(signal.SIGTERM)[0] == 0
        finally:
            process.kill()


@pytest.mark.parametrize("options", [[], ["--reload"]])
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_function_within_its_limit_ends_first(by: signal.Signals, options: list[str]) -> None:
    with held("spin", 3600.0, *options) as served:
        served.dev.process.send_signal(by)
        until(Path("err.txt"), "told to end: first counter.spin on 'a' may end, within")
        time.sleep(3.0)  # longer than anything but the limit
        assert served.dev.process.poll() is None
        Path("held").unlink()
        assert served.ended() == 0
        assert served.outcome is None, "it was answered"
    goes_on()


def test_an_endless_one_is_cut_at_its_limit(directory: Path) -> None:
    with held("spin", 3.0) as served:
        served.dev.process.send_signal(signal.SIGTERM)
        assert served.ended() == 0
        assert isinstance(served.outcome, TransactionAborted)
        assert served.outcome.type == "FunctionTooLong"
    goes_on()


def test_one_in_c_code_is_left_behind_its_limit(directory: Path) -> None:
    with held("doze", 1.0) as served:
        served.dev.process.send_signal(signal.SIGTERM)
        assert served.ended() == 128 + signal.SIGTERM
        assert "told to end, but what runs at " in Path("err.txt").read_text()
    goes_on()


@pytest.mark.parametrize("options", [[], ["--reload"]])
@pytest.mark.parametrize("function", ["spin", "doze"])
def test_a_second_signal_waits_for_nothing(function: str, options: list[str]) -> None:
    with held(function, 3600.0, *options) as served:
        served.dev.process.send_signal(signal.SIGTERM)
        until(Path("err.txt"), "told to end: first")
        served.dev.process.send_signal(signal.SIGINT)
        assert served.ended() != 0
    goes_on()


ENDLESS = """
def endless(old: object) -> str:
    Path("began").touch()
    while Path("held").exists():
        pass
    return "more"

class Heavy:
    def __del__(self) -> None:
        Path("began").touch()
        while Path("held").exists():
            pass

@counter.register
async def drop(ctx: Context) -> None:
    Heavy()
"""


def test_an_endless_migration_when_it_starts(directory: Path) -> None:
    """Nothing is served yet, so it waits for nothing; the code from before goes on."""
    with held("spin", 0.5) as served:
        served.dev.process.send_signal(signal.SIGTERM)
        assert served.ended() == 0
    Path("began").unlink()
    migrating = APP.replace('Operator("counter")', 'Operator("counter", state_type=str, migrate=endless)')
    before, after = migrating.split("counter =", 1)
    endless, _, _ = ENDLESS.partition("class Heavy")
    (directory / "bank.py").write_text(before + endless + "counter =" + after)
    words = [*STYX, "dev", "bank:app", "--port", "0", "--function-seconds-max", "3600"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(Path("began"))
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) in (-signal.SIGTERM, 128 + signal.SIGTERM)
        finally:
            process.kill()
    (directory / "bank.py").write_text(APP)
    goes_on()


def test_a_finalizer_that_never_ends(directory: Path) -> None:
    before, after = APP.split("app = App", 1)
    (directory / "bank.py").write_text(before + ENDLESS + "\napp = App" + after)
    with held("drop", 1.0) as served:
        served.dev.process.send_signal(signal.SIGTERM)
        assert served.ended() in (0, 128 + signal.SIGTERM)
    goes_on()
