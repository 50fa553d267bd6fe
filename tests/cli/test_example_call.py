"""The command in the banner: it can be run as it is printed."""

import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from styx import App, Context, Operator
from styx.cli.call import json_arguments
from styx.cli.example_call import command, example
from styx.model.function_spec import UserFunction


class Item(msgspec.Struct):
    name: str
    price: Decimal
    tags: list[str] = []


def words(*functions: UserFunction, key_type: Any = str) -> list[str]:
    shelf = Operator("shelf", key_type=key_type)
    for function in functions:
        shelf.register(function)
    import shlex

    return shlex.split(example(App("shop", [shelf]), "http://127.0.0.1:8080").removeprefix(command()))


async def plain(ctx: Context, text: str, number: int, flag: bool, anything: Any, more: int = 1) -> None: ...
async def rich(ctx: Context, item: Item, when: datetime, kind: Literal["a", "b"], pair: tuple[int, str]) -> None: ...
async def choosy(ctx: Context, *, named: int) -> None: ...
async def nothing(ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("functions", "key_type", "expected"),
    [
        ((plain,), str, ["call", "shelf", "alice", "plain", "text", "100", "true", "anything"]),
        ((choosy, nothing), int, ["call", "shelf", "1", "nothing"]),
        ((nothing,), (int, str), ["call", "shelf", '[1,"a"]', "nothing"]),
    ],
    ids=range(3),
)
def test_words(functions: tuple[UserFunction, ...], key_type: Any, expected: list[str]) -> None:
    assert words(*functions, key_type=key_type) == expected


def test_arguments_fit() -> None:
    shelf = Operator("shelf")
    shelf.register(rich)
    typed = words(rich)[4:]
    shelf.function("rich").signature.decode(msgspec.msgpack.encode(msgspec.json.decode(json_arguments(typed))))


def test_nothing_to_call() -> None:
    assert example(App("empty", []), "http://x") == ""


def test_how_it_was_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "styx"
    script.parent.mkdir()
    script.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert command() == str(script)
    monkeypatch.chdir(tmp_path)
    assert command() == "bin/styx"
    assert command(tmp_path / "shop") == "../bin/styx"
    monkeypatch.setattr(sys, "argv", ["bin/styx"])
    assert command(Path("shop")) == "../bin/styx"
    assert command(Path("/elsewhere/shop")) == str(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert command() == "styx"
    monkeypatch.setattr(sys, "argv", ["/x/__main__.py"])
    assert command() == f"{sys.executable} -m styx"
