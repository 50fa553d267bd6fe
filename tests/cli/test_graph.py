"""`styx graph`: the graphs that an app declares, printed and drawn, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Styx

SHOP = """
from styx import App, Graph, Operator

cart = Operator("cart")


@cart.register
async def checkout(ctx):
    ctx.call_async(cart, seal, ctx.key)


@cart.register
async def seal(ctx): ...


whole = Graph("checkout", start=checkout).edge(checkout, seal).terminal(seal)
app = App("shop", [cart], graphs=[whole, Graph("seal", start=seal).terminal(seal)])
bare = App("bare", [Operator("cart")])
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory with the app's module, which is forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "drawn_shop.py").write_text(SHOP)
    yield
    sys.modules.pop("drawn_shop", None)


def test_graphs_are_printed(styx: Styx) -> None:
    ran = styx("graph", "drawn_shop:app")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "checkout: starts at cart.checkout\n"
        "  cart.checkout -> cart.seal\n"
        "  cart.seal     -> (terminal)\n"
        "\n"
        "seal: starts at cart.seal\n"
        "  cart.seal -> (terminal)\n"
    )


def test_one_of_them(styx: Styx) -> None:
    assert styx("graph", "drawn_shop:app", "seal").out.startswith("seal: ")


def test_a_picture_is_drawn(styx: Styx, tmp_path: Path) -> None:
    ran = styx("graph", "drawn_shop:app", "--svg", "graphs.svg")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    text = (tmp_path / "graphs.svg").read_text()
    assert text.startswith("<svg ")
    assert "checkout" in text


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["drawn_shop:bare"], 1, "app 'bare' declares no graph"),
        (["drawn_shop:app", "pay"], 2, "app 'shop' has no graph 'pay'; it has: checkout, seal"),
        (["drawn_shop:app", "--svg", "missing/graphs.svg"], 1, "cannot write missing/graphs.svg: No such file"),
        (["drawn_shop:nothing"], 2, "nothing"),
        ([], 2, "MODULE:APP"),
    ],
)
def test_what_is_refused(styx: Styx, words: list[str], status: int, told: str) -> None:
    ran = styx("graph", *words)
    assert (ran.status, ran.out) == (status, "")
    assert told in ran.err
