"""`styx dev` on a file that is edited between a SIGKILL and the next start, as a developer does all day."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Styx
from tests.cli.test_dev_process import dev

pytestmark = pytest.mark.slow
SHOP = """
import msgspec
from styx import App, Context, Operator

class Cart(msgspec.Struct):
    total: int

cart = Operator("cart", state_type=Cart)

@cart.register
async def add(ctx: Context, price: int) -> int:
    before = await ctx.get()
    await ctx.put(Cart(price if before is None else before.total + price))
    return (await ctx.get()).total

@cart.register
async def look(ctx: Context) -> Cart | None:
    return await ctx.get()

app = App("shop", operators=[cart])
"""
TARGET = "shop:app"
CHANGED = "changed since the last start; 1 epochs of the log were run again on the code that had run them"


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    return file


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def refused() -> str:
    """What a start says that does not serve."""
    words = [sys.executable, "-m", "styx", "dev", TARGET, "--port", "0"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode in (1, 2)
    assert ended.stdout == ""
    return ended.stderr


def test_the_edit_loop(styx: Styx, file: Path) -> None:
    def call(url: str, *words: str) -> str:
        return styx("call", "cart", "ada", *words, "--url", url).out

    with dev(target=TARGET) as first:
        assert call(first.url, "add", "5") == "5\n"
        first.end(signal.SIGKILL)

    # A function's result has changed.
    edit(file, "before.total + price))", "before.total + 10 * price))")
    edit(file, "Cart(price if", "Cart(10 * price if")
    with dev(target=TARGET) as second:
        assert (
            "Code  changed since the last start; 1 epochs of the log were run again on the code that had run them"
            in (second.lines)
        )
        assert call(second.url, "look") == '{"total":5}\n'
        assert call(second.url, "add", "5") == "55\n"
        second.end(signal.SIGKILL)

    # A function is gone.
    edit(file, "@cart.register\nasync def add", "async def add")
    with dev(target=TARGET) as third:
        assert call(third.url, "look") == '{"total":55}\n'
        assert "has no function 'add'" in styx("call", "cart", "ada", "add", "5", "--url", third.url).err
        third.end(signal.SIGKILL)

    # The state's type is another one: refused, and nothing is changed.
    edit(file, "    total: int\n", "    cents: int\n    currency: str\n")
    for _ in range(2):
        words = refused()
        assert "1 of 1 stored entities do not fit the new version" in words
        assert "cart['ada']" in words
        assert "migrate=" in words
    edit(file, "state_type=Cart)", "state_type=Cart, migrate=lambda old: Cart(100 * old['total'], 'EUR'))")
    with dev(target=TARGET) as fourth:
        assert "Code  operator 'cart': converted by migrate=: 1" in fourth.lines
        assert call(fourth.url, "look") == '{"cents":5500,"currency":"EUR"}\n'
        fourth.end(signal.SIGKILL)

    # The operator has another name.
    edit(file, 'Operator("cart"', 'Operator("basket"')
    assert "the data has 1 entity, 'ada' for example, of operator 'cart', which app 'shop' does not have" in refused()
    edit(file, 'Operator("basket"', 'Operator("cart"')
    with dev(target=TARGET) as fifth:
        assert call(fifth.url, "look") == '{"cents":5500,"currency":"EUR"}\n'
