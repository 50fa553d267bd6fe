"""`styx dev` as a process: served, killed, started again, stopped."""

import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.conftest import Styx
from tests.cli.served import STYX, until_served

pytestmark = pytest.mark.slow
BANK = """
from styx import App, Context, Operator

account = Operator("account")

@account.register
async def credit(ctx: Context, amount: int) -> int:
    balance = await ctx.get(0) + amount
    await ctx.put(balance)
    return balance

app = App("bank", operators=[account])
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank.py").write_text(BANK)
    return tmp_path


class Dev:
    """A running `styx dev`: where it serves and what it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines = until_served(process)
        self.url = self.lines[0].split()[-1]

    def end(self, by: signal.Signals) -> tuple[int, str]:
        """Its exit code and its last words."""
        self.process.send_signal(by)
        out, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out


@contextmanager
def dev(*options: str, target: str = "bank:app") -> Iterator[Dev]:
    words = [*STYX, "dev", target, "--port", "0", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Dev(process)
        finally:
            process.kill()


def test_nothing_answered_is_lost(styx: Styx) -> None:
    with dev() as first:
        assert "Data  .styx (new)" in first.lines
        assert styx("call", "account", "ada", "credit", "5", "--url", first.url).out == "5\n"
        assert first.end(signal.SIGKILL)[0] == -signal.SIGKILL
    with dev() as second:
        assert any("from the log in " in line for line in second.lines)
        assert styx("call", "account", "ada", "credit", "5", "--url", second.url).out == "10\n"
        status, words = second.end(signal.SIGTERM)
    assert status == 0
    stopping, stopped = words.splitlines()
    assert stopping == "Stopping: storing a snapshot …"
    stored = re.fullmatch(r"Stopped; the snapshot at epoch (\d+) is stored in \.styx\.", stopped)
    assert stored is not None
    with dev() as third:
        assert any(f"from the snapshot at epoch {stored[1]}" in line for line in third.lines)
        assert styx("call", "account", "ada", "credit", "5", "--url", third.url).out == "15\n"
        assert third.end(signal.SIGINT)[0] == 0


def test_one_at_a_time(styx: Styx, directory: Path) -> None:
    with dev("--data-dir", "data") as first:
        ran = subprocess.run(
            [*STYX, "dev", "bank:app", "--port", "0", "--data-dir", "data"], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout) == (1, "")
        assert f"data is in use by process {first.process.pid}" in ran.stderr
        port = first.url.rpartition(":")[2]
        ran = subprocess.run(
            [*STYX, "dev", "bank:app", "--port", port, "--data-dir", "other"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 2
        assert f"cannot listen on 127.0.0.1:{port}" in ran.stderr


def test_what_happens_is_shown(styx: Styx, directory: Path) -> None:
    (directory / "bank.py").write_text(BANK.replace("    balance = await", "    {}[amount]\n    balance = await"))
    with (directory / "err.txt").open("w+") as err:
        words = [*STYX, "dev", "bank:app", "--port", "0"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=err, text=True) as process:
            try:
                served = Dev(process)
                [command] = [line.split(maxsplit=1)[1] for line in served.lines if line.startswith("Try")]
                ran = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
                assert ran.stderr.strip() == "aborted: KeyError: 100"
                assert "bank.py:8 in credit" in styx("errors", "--url", served.url).out
                assert served.end(signal.SIGTERM)[0] == 0
            finally:
                process.kill()
        err.seek(0)
        head, place, source, request = err.read().splitlines()
    assert head == "account/alice.credit aborted: KeyError: 100  (tid 1, epoch 0)"
    assert (place, source) == ("  bank.py:8 in credit", "    {}[amount]")
    assert re.fullmatch(r"409 account/alice\.credit KeyError \d+\.\d ms epoch 0", request)


def test_mistake_in_the_module(directory: Path) -> None:
    (directory / "bank.py").write_text("import styx\nmissing_name")
    ran = subprocess.run([*STYX, "dev", "bank.py"], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "bank.py:2\n    missing_name\nNameError" in ran.stderr
    assert "Traceback" not in ran.stderr
