"""Packages run in a process that has never seen their sources, and do there what the app does where it was written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.deployment.sources import EVERYTHING

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]

CALLS = """
import asyncio, sys
import styx

async def answers(app, calls):
    async with styx.embedded(app) as client:
        for operator, key, function, arguments in calls:
            reply = await client.request(operator, key, function, *arguments)
            print(reply.result, reply.error)
"""
PACK = """
import pathlib, sys
from styx.deployment.package import pack, read_header
package = pack(app, b"secret")
pathlib.Path(sys.argv[1]).write_bytes(package)
header = read_header(package, b"secret")
print(header.fingerprint, file=sys.stderr)
"""
UNPACK = """
import pathlib
from styx.deployment.package import unpack
app = unpack(pathlib.Path(sys.argv[1]).read_bytes(), b"secret")
"""
MONEY = {"cents": 5}
LINE = {"text": " x ", "price": {"cents": 100}}
EVERY_CALL = [
    ("thing", ("a", 1), "open", (MONEY, [LINE])),
    ("thing", ("a", 1), "look", ()),
    ("thing", ("a", 1), "spend", (1001,)),
    ("thing", ("a", 1), "open", ({"cents": -1},)),
    ("plain", "x", "visit", ("bad", "1.5")),
    ("shelf", "x", "fill", ({"left": {"cents": 3}, "right": [{"left": {"cents": 4}}]},)),
    ("shelf", "x", "fill", ({"left": {"cents": "q"}},)),
    ("shelf", "x", "ask", ()),
]

ONE_FILE = """
from __future__ import annotations
import dataclasses, sys
import styx
from styx import App, Operator

@dataclasses.dataclass
class Account:
    balance: int = 0
    history: list[Entry] = dataclasses.field(default_factory=list)

@dataclasses.dataclass
class Entry:
    amount: int

class Poor(Exception):
    pass

account = Operator("account", state_type=Account)

@account.register
async def pay(ctx, amount: int) -> Account:
    state = await ctx.get() or Account()
    state.balance += amount
    state.history.append(Entry(amount))
    if state.balance < 0:
        raise Poor(f"{ctx.key} lacks {-state.balance}")
    await ctx.put(state)
    return await ctx.call(account, pay, key=ctx.key, params=(1,)) if amount > 1 else state

app = App("one", [account])
"""
ONE_FILE_CALLS = [("account", "ada", "pay", (5,)), ("account", "ada", "pay", (-7,)), ("account", "ada", "pay", ("q",))]


def write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(code: str, directory: Path, *arguments: object, seed: int = 1) -> tuple[str, str]:
    """What `code` printed, run as a script that stands in `directory`: (output, errors)."""
    script = directory / "script.py"
    script.write_text(code)
    command = [sys.executable, "-W", "error", "-B", str(script), *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=directory)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def here_and_there(tmp_path: Path, app: str, calls: list[object]) -> tuple[str, str]:
    """What the app answers in the process that packs it, and in one that only has the package."""
    make, use = tmp_path / "make", tmp_path / "use"
    use.mkdir()
    ask = f"\nasyncio.run(answers(app, {calls!r}))\n"
    here, _ = run(app + CALLS + ask + PACK, make, tmp_path / "package")
    there, _ = run(CALLS + UNPACK + ask, use, tmp_path / "package", seed=2)
    return here, there


def test_an_app_of_many_modules(tmp_path: Path) -> None:
    write(tmp_path / "make", EVERYTHING)
    ask = "from everything import app\n"
    here, there = here_and_there(tmp_path, ask, [*EVERY_CALL])
    assert here == there
    assert here.count("None\n") == 5
    assert "TooMuch" in here
    assert "lazily" in here


def test_an_app_in_one_file(tmp_path: Path) -> None:
    write(tmp_path / "make", {"one.py": ONE_FILE})
    here, there = here_and_there(tmp_path, "from one import app\n", [*ONE_FILE_CALLS])
    assert here == there
    assert "{'balance': 6, 'history': [{'amount': 5}, {'amount': 1}]} None" in here
    assert "ada lacks 1" in here


def test_an_app_in_the_script_itself(tmp_path: Path) -> None:
    (tmp_path / "make").mkdir()
    here, there = here_and_there(tmp_path, ONE_FILE, [*ONE_FILE_CALLS])
    assert here == there
    assert "ada lacks 1" in there


def test_the_fingerprint_is_the_same_in_another_process(tmp_path: Path) -> None:
    write(tmp_path / "make", EVERYTHING)
    code = "from everything import app\n" + PACK
    _, first = run(code, tmp_path / "make", tmp_path / "package", seed=1)
    _, second = run(code, tmp_path / "make", tmp_path / "package", seed=2)
    assert first == second
    write(tmp_path / "make", {"everything/lazy.py": EVERYTHING["everything/lazy.py"] + "\n# changed\n"})
    _, third = run(code, tmp_path / "make", tmp_path / "package", seed=2)
    assert third != first


def test_unpacking_leaves_nothing_to_import(tmp_path: Path) -> None:
    write(tmp_path / "make", EVERYTHING)
    run("from everything import app\n" + PACK, tmp_path / "make", tmp_path / "package")
    code = "import sys\n" + UNPACK + "print([name for name in sys.modules if name.startswith('everything')])"
    (tmp_path / "use").mkdir()
    assert run(code, tmp_path / "use", tmp_path / "package")[0] == "[]\n"
