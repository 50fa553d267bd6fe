"""The race of one cart: it ends, it has raced, and the audit of all criteria is green."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.marketplace import settings
from benchmarks.marketplace.audit.audit import audit
from benchmarks.marketplace.race.__main__ import main
from benchmarks.marketplace.race.race import CUSTOMER, raced
from benchmarks.marketplace.record import Ended, Kind
from benchmarks.marketplace.services.cart import checking_out
from benchmarks.marketplace.services.order.rows import orders
from benchmarks.marketplace.services.stock.rows import stock

pytestmark = pytest.mark.anyio


async def test_a_cart_is_checked_out_again_and_again_while_its_products_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "REJECTED", 20.0)
    race, run = await raced(25, seed=1)
    assert audit(run) == []
    counts = race.counts
    assert counts.checkouts >= 25
    assert counts.repeated > 0, "each submission was sent twice at once"
    assert len(run.after.rows(orders, CUSTOMER)) == counts.orders <= counts.checkouts
    committed = {asked.kind for asked in run.record if asked.ended is Ended.COMMITTED}
    assert committed >= {Kind.ADD, Kind.CHECKOUT, Kind.PRICE, Kind.REPLACE, Kind.WITHDRAW, Kind.RESTOCK, Kind.DELIVERY}


async def test_a_race_in_which_a_rise_is_paid_and_old_versions_are_sold_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    matched = checking_out.matched

    async def nothing(ctx: object, event: object) -> None: ...

    monkeypatch.setattr(
        checking_out, "matched", lambda *row: msgspec.structs.replace(matched(*row), price_discount=0, unit_price=99_00)
    )
    monkeypatch.setattr(stock.functions["follow_product"], "func", nothing)
    _, run = await raced(10, seed=1)
    assert {"CART", "S#1"} <= {str(violation.criterion) for violation in audit(run)}


def test_a_race_of_no_checkout_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--checkouts", "0"])
    assert "at least 1, got 0" in capsys.readouterr().err
