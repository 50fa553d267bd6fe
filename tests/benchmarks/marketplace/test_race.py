"""The race of one cart: it ends, it has raced, and the audit of all criteria is green."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.marketplace import settings
from benchmarks.marketplace.audit.audit import audit
from benchmarks.marketplace.race.__main__ import main
from benchmarks.marketplace.race.race import CUSTOMER, raced
from benchmarks.marketplace.record import Ended, Kind
from benchmarks.marketplace.services.order.rows import orders

pytestmark = pytest.mark.anyio


async def test_a_cart_is_checked_out_again_and_again_while_its_products_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "REJECTED", 20.0)
    race, run = await raced(25, seed=1, directory=tmp_path / "data")
    assert audit(run) == []
    counts = race.counts
    assert counts.checkouts >= 25
    assert counts.repeated > 0, "each submission was sent twice at once"
    assert len(run.after.rows(orders, CUSTOMER)) == counts.orders <= counts.checkouts
    committed = {asked.kind for asked in run.record if asked.ended is Ended.COMMITTED}
    assert committed >= {Kind.ADD, Kind.CHECKOUT, Kind.PRICE, Kind.REPLACE, Kind.WITHDRAW, Kind.RESTOCK, Kind.DELIVERY}


def test_a_race_of_no_checkout_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--checkouts", "0"])
    assert "at least 1, got 0" in capsys.readouterr().err
