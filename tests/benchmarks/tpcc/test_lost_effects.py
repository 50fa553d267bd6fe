"""An app that loses an effect once in a while: the audit names the rule that each of them breaks."""

from __future__ import annotations

import pytest

from benchmarks.driver.lossy import Loss, LossyApp
from benchmarks.tpcc.app import app
from tests.benchmarks.tpcc.serial_run import audited, started

SHARE = 0.05
ELSEWHERE = ("district.new_order", "warehouse.payment")
"""Few requests are for these, because most stay at home."""
SHARE_ELSEWHERE = 0.5


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("district.new_order", "was told of twice"),
        ("district.local_new_order", "was told of twice"),
        ("stock.supply", "stock: "),
        ("order.enter", "is missing: a gap in the numbers"),
        ("new_order.enqueue", "has O_CARRIER_ID None, but is not in NEW_ORDER"),
        ("customer_order.point_to", "index of last orders: "),
        ("order_line.enter_line", "order line: "),
        ("warehouse.payment", "3.3.2.8: "),
        ("warehouse.local_payment", "3.3.2.8: "),
        ("district.take_in", "3.3.2.9: "),
        ("customer.pay", "stands in HISTORY, but C_PAYMENT_CNT is"),
        ("history.record", "is missing in HISTORY, but C_PAYMENT_CNT is"),
        ("undelivered.deliver_oldest", "index of undelivered orders: "),
        ("new_order.dequeue", "3.3.2.5: "),
        ("order.hand_over", "is not delivered, but carrier"),
        ("order_line.deliver_line", "3.3.2.7: "),
        ("customer.charge", "3.3.2.10: "),
    ],
)
def test_a_lost_effect_is_found(function: str, said: str) -> None:
    operator, name = function.split(".")
    lossy = LossyApp(app, Loss(operator, name, SHARE_ELSEWHERE if function in ELSEWHERE else SHARE))
    run = started(lossy.app)
    run.send_all()
    assert lossy.lost.invocations > 0
    violations = "\n".join(audited(run).violations)
    assert said in violations
