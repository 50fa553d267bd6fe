"""`styx dev --reload` as a process: edits under load, code that does not import, state that does not fit."""

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import styx
from tests.cli.served import STYX
from tests.cli.test_dev_process import Dev

pytestmark = pytest.mark.slow
BANK = """
import msgspec
from styx import App, Context, Operator

account = Operator("account", state_type={type})

@account.register
async def credit(ctx: Context, amount: int) -> list[int]:
    balance = await ctx.get(0) + amount
    await ctx.put(balance)
    return [balance, {version}]

app = App("bank", operators=[account])
"""
CLIENTS = 12


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(version: int, type: str = "int") -> None:
    Path("bank.py").write_text(BANK.format(version=version, type=type))


@contextmanager
def dev() -> Iterator[Dev]:
    words = [*STYX, "dev", "bank:app", "--port", "0", "--reload", "--quiet"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Dev(process)
        finally:
            process.kill()


def heard(served: Dev, wanted: str) -> str:
    """Reads on until a line matches; gives it."""
    assert served.process.stdout is not None
    for line in served.process.stdout:
        assert "Reloaded" not in line or "Reloaded" in wanted, "it took over"
        served.lines.append(line.rstrip())
        if re.search(wanted, line):
            return line.rstrip()
    raise AssertionError("\n".join(served.lines))


class Client:
    """Sends one request after the other to its own entity, and counts."""

    def __init__(self, number: int, url: str) -> None:
        self.sent = 0
        self.versions: list[int] = []
        self.wrong: list[Any] = []
        self._url = f"{url}/v1/account/k{number}/credit"
        self._pause_s = 0.002 * number

    async def run(self, session: aiohttp.ClientSession, until: int) -> None:
        while not self.versions or self.versions[-1] != until:
            self.sent += 1
            async with session.post(self._url, json=[1]) as response:
                body = await response.json()
            if response.status != 200 or body["result"][0] != self.sent:
                self.wrong.append((self.sent, response.status, body))
                return
            self.versions.append(body["result"][1])
            await asyncio.sleep(self._pause_s)


@pytest.mark.anyio
async def test_edits_under_load(directory: Path) -> None:
    """Each request is answered once, by one version or the next; none is refused, and none runs twice."""
    last = 3
    write(0)
    with dev() as served:
        clients = [Client(number, served.url) for number in range(CLIENTS)]
        async with aiohttp.ClientSession() as session:
            running = [asyncio.create_task(client.run(session, last)) for client in clients]
            for version in range(1, last + 1):
                while not all(  # noqa: ASYNC110 - clients have no event for it
                    client.versions[-1:] == [version - 1] or client.wrong for client in clients
                ):
                    await asyncio.sleep(0.01)
                write(version)
            await asyncio.gather(*running)
        assert [client.wrong for client in clients] == [[]] * CLIENTS
        for client in clients:
            assert client.versions == sorted(client.versions)
            assert set(client.versions) == set(range(last + 1))
        assert served.end(signal.SIGINT)[0] == 0


def credit(url: str) -> list[int]:
    with styx.connect_sync(url) as client:
        result: list[int] = client.call("account", "a", "credit", 1)
        return result


def test_what_does_not_import_changes_nothing(directory: Path) -> None:
    write(0)
    with dev() as served:
        Path("bank.py").write_text("import styx\nmissing_name")
        heard(served, "The version before goes on")
        assert any("bank.py:2" in line for line in served.lines)
        assert any("NameError" in line for line in served.lines)
        assert credit(served.url) == [1, 0]
        write(1)
        heard(served, "Reloaded in")
        assert credit(served.url) == [2, 1]
        assert served.end(signal.SIGTERM)[0] == 0


def test_code_that_the_state_does_not_fit_changes_nothing(directory: Path) -> None:
    write(0)
    with dev() as served:
        assert credit(served.url) == [1, 0]
        write(1, "list[str]")
        heard(served, "The version before goes on")
        assert any("account['a']: expected" in line for line in served.lines), "\n".join(served.lines)
        assert credit(served.url) == [2, 0]
        write(2)
        heard(served, "Reloaded in")
        assert credit(served.url) == [3, 2]
        assert served.end(signal.SIGINT)[0] == 0


def test_without_watchfiles(directory: Path) -> None:
    write(0)
    code = "import sys; sys.modules['watchfiles'] = None; from styx.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "dev", "bank:app", "--reload"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "styx dev --reload lacks watchfiles" in ran.stderr
