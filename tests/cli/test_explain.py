"""`styx explain`: conditions read as their columns' types say, what is printed, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Styx

SHOP = """
import enum
from datetime import date
from decimal import Decimal
from typing import Annotated
from uuid import UUID

import msgspec

from styx import App, Index, Operator


class State(enum.Enum):
    OPEN = "open"
    SENT = "sent"


class Order(msgspec.Struct):
    number: int
    name: str
    state: State
    on: date
    price: Decimal
    cents: Annotated[int, msgspec.Meta(gt=0)]
    voucher: UUID | None = None
    last: bool = False


shop = Operator("shop")
shop.table("orders", Order, key="number", indexes=[
    Index("in_state", equal="state", order="on"),
    Index("by_name", order="name"),
    Index("by_price", order="price"),
    Index("of_voucher", equal="voucher"),
    Index("ends", equal="last"),
    Index("by_cents", order="cents"),
])
app = App("shop", [shop])
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory with the app's module, which is forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "explained_shop.py").write_text(SHOP)
    yield
    sys.modules.pop("explained_shop", None)


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (["number=7"], "by index 'primary key' with number=7"),
        (["state=open", "on>=2026-01-05"], "by index 'in_state' with state="),
        (["name^=A=b"], "by index 'by_name' with name=prefix('A=b')"),
        (["name=null"], "by index 'by_name' with name='null'"),
        (["price>=0", "price<=1.50"], "with price=between(Decimal('0'), Decimal('1.50'))"),
        (["price<-1"], "with price=below(Decimal('-1'))"),
        (["voucher=null"], "by index 'of_voucher' with voucher=None"),
        (["cents>=0"], "with cents=at_least(0)"),
        (["last=true"], "by index 'ends' with last=True"),
        (["name>a", "number=3", "--by", "by_name"], "by index 'by_name' with name=above('a')"),
        (["--by", "by_price"], "reads all rows of the entity, by index 'by_price'"),
    ],
)
def test_it_prints_what_the_table_explains(styx: Styx, conditions: list[str], told: str) -> None:
    ran = styx("explain", "explained_shop:app", "shop/orders", *conditions)
    assert (ran.err, ran.status) == ("", 0)
    assert ran.out.startswith("shop/orders: ")
    assert told in ran.out


def test_a_query_that_no_index_serves(styx: Styx) -> None:
    words = ["explain", "explained_shop:app", "shop/orders", "on=2026-01-05"]
    ran = styx(*words)
    assert (ran.status, ran.out) == (1, "")
    assert "no index serves the query" in ran.err
    assert """declare Index("by_on", equal='on')""" in ran.err
    assert "reads all rows of the entity" in styx(*words, "--scan").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shop/lines"], "operator 'shop' has no table 'lines'; it has: orders"),
        (["till/orders"], "till"),
        (["orders"], "its full name such as 'cart/items'"),
        (["shop/orders", "nubmer=7"], "has no column 'nubmer'; it has: number, name,"),
        (["shop/orders", "name=x", "--by", "names"], "has no index 'names'; it has: primary key, in_state,"),
        (["shop/orders", "number=x"], "column 'number' is of type int, and 'x' is no value of it"),
        (["shop/orders", "state=lost"], "column 'state' is of type str enum State, and 'lost' is no value of it"),
        (["shop/orders", "number^=1"], "only texts and bytes have a prefix"),
        (["shop/orders", "number"], "'number' is no condition"),
        (["shop/orders", "=7"], "'=7' is no condition"),
        (["shop/orders", "number=1", "number=2"], "column 'number' has two conditions with ="),
        (["shop/orders", "number>1", "number<2"], "of two only >= and <= go together"),
    ],
)
def test_what_is_refused(styx: Styx, words: list[str], told: str) -> None:
    ran = styx("explain", "explained_shop:app", *words)
    assert (ran.status, ran.out) == (2, "")
    assert told in ran.err
