"""An app that loses an effect once in a while: the audit names the rule that each of them breaks."""

from __future__ import annotations

import pytest

from benchmarks.driver.lossy import LossyApp, parse
from benchmarks.tpcc.app import app
from tests.benchmarks.tpcc.serial_run import audited, started

SHARE = 0.05
ELSEWHERE = ("district.new_order", "warehouse.supply/stock", "warehouse.payment")
"""Few requests are for these, because most stay at home."""
SHARE_ELSEWHERE = 0.5


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("district.new_order", "was told of twice"),
        ("district.local_new_order", "was told of twice"),
        ("warehouse.sell/stock", "stock: "),
        ("warehouse.supply/stock", "stock: "),
        ("district.local_new_order/order", "is missing: a gap in the numbers"),
        ("district.local_new_order/new_order", "has O_CARRIER_ID None, but is not in NEW_ORDER"),
        ("district.local_new_order/order_line", "order line: "),
        ("warehouse.payment", "3.3.2.8: "),
        ("warehouse.local_payment", "3.3.2.8: "),
        ("district.take_in", "3.3.2.9: "),
        ("district.pay/customer", "stands in HISTORY, but C_PAYMENT_CNT is"),
        ("district.pay/history", "is missing in HISTORY, but C_PAYMENT_CNT is"),
        ("district.deliver_oldest", "was delivered twice"),
        ("district.deliver_oldest/new_order", "was delivered twice"),
        ("district.deliver_oldest/order", "is not delivered, but carrier"),
        ("district.deliver_oldest/order_line", "3.3.2.7: "),
        ("district.deliver_oldest/customer", "3.3.2.10: "),
    ],
)
def test_a_lost_effect_is_found(function: str, said: str) -> None:
    share = SHARE_ELSEWHERE if function in ELSEWHERE else SHARE
    lossy = LossyApp(app, parse(f"{function}={share}"))
    run = started(lossy.app)
    run.send_all()
    assert lossy.lost.invocations > 0
    violations = "\n".join(audited(run).violations)
    assert said in violations
