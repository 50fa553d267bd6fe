"""The twelve consistency conditions of clause 3.3.2. Each takes rows and gives violations as texts.

Each function is one condition, and yields a text for each violation: the condition's clause, whose it is, and the two
values that differ. What a condition sums over many rows is gathered in an `OrdersTally` while the rows stream by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.tpcc.tables import Customer, NewOrder, Order, OrderLine

DistrictKey = tuple[int, int]
CustomerKey = tuple[int, int, int]
OrderKey = tuple[int, int, int]


class OrdersTally:
    """Sums over all rows of ORDER, NEW_ORDER and ORDER_LINE of one district, for the conditions."""

    def __init__(self) -> None:
        self.orders = 0
        self.last_o_id = 0
        self.ol_cnt = 0
        self.lines = 0
        self.new_orders = 0
        self.first_new = 0
        self.last_new = 0

    def add(self, o_id: int, row: Order | None, new_order: NewOrder | None, lines: Sequence[OrderLine]) -> None:
        """Adds the rows of one order number. Numbers must come in ascending order."""
        self.lines += len(lines)
        if row is not None:
            self.orders += 1
            self.last_o_id = o_id
            self.ol_cnt += row.ol_cnt
        if new_order is not None:
            self.new_orders += 1
            self.first_new = self.first_new or o_id
            self.last_new = o_id


def condition_1(w_id: int, ytd: int, districts_ytd: Sequence[int]) -> Iterator[str]:
    """A warehouse's W_YTD is the sum of its districts' D_YTD."""
    if ytd != sum(districts_ytd):
        yield f"3.3.2.1: warehouse {w_id} has W_YTD {ytd}, but its districts' D_YTD make {sum(districts_ytd)}"


def condition_2(key: DistrictKey, next_o_id: int, tally: OrdersTally) -> Iterator[str]:
    """D_NEXT_O_ID follows the highest number in ORDER, and that in NEW_ORDER unless all orders are delivered."""
    if tally.last_o_id != next_o_id - 1:
        yield f"3.3.2.2: district {key} has D_NEXT_O_ID {next_o_id}, but its last order is {tally.last_o_id}"
    if tally.new_orders and tally.last_new != next_o_id - 1:
        yield f"3.3.2.2: district {key} has D_NEXT_O_ID {next_o_id}, but its last row of NEW_ORDER is {tally.last_new}"


def condition_3(key: DistrictKey, tally: OrdersTally) -> Iterator[str]:
    """A district's numbers in NEW_ORDER have no gap."""
    span = tally.last_new - tally.first_new + 1
    if tally.new_orders and tally.new_orders != span:
        yield (
            f"3.3.2.3: district {key} has {tally.new_orders} rows of NEW_ORDER rather than the {span} "
            f"from {tally.first_new} to {tally.last_new}"
        )


def condition_4(key: DistrictKey, tally: OrdersTally) -> Iterator[str]:
    """A district has as many rows of ORDER_LINE as its orders' O_OL_CNT together."""
    if tally.lines != tally.ol_cnt:
        yield f"3.3.2.4: district {key} has {tally.lines} order lines, but its orders' O_OL_CNT make {tally.ol_cnt}"


def condition_5(key: OrderKey, row: Order | None, new_order: NewOrder | None) -> Iterator[str]:
    """An order has no carrier as long as it is in NEW_ORDER, and only so long."""
    if row is None and new_order is not None:
        yield f"3.3.2.5: order {key} is in NEW_ORDER, but not in ORDER"
    elif row is not None and (row.carrier_id is None) != (new_order is not None):
        where = "in NEW_ORDER" if new_order is not None else "not in NEW_ORDER"
        yield f"3.3.2.5: order {key} has O_CARRIER_ID {row.carrier_id}, but is {where}"


def condition_6(key: OrderKey, row: Order | None, lines: Sequence[OrderLine]) -> Iterator[str]:
    """An order has as many rows of ORDER_LINE as its O_OL_CNT says."""
    ol_cnt = 0 if row is None else row.ol_cnt
    if len(lines) != ol_cnt:
        yield f"3.3.2.6: order {key} has O_OL_CNT {ol_cnt}, but {len(lines)} order lines"


def condition_7(key: OrderKey, row: Order | None, lines: Sequence[OrderLine]) -> Iterator[str]:
    """An order's lines have a time of delivery if the order has a carrier, and only then."""
    carrier_id = None if row is None else row.carrier_id
    wrong = [line.delivery_d for line in lines if (line.delivery_d is None) != (carrier_id is None)]
    if wrong:
        yield f"3.3.2.7: order {key} has O_CARRIER_ID {carrier_id}, but in {len(wrong)} lines OL_DELIVERY_D {wrong[0]}"


def condition_8(w_id: int, ytd: int, paid: int) -> Iterator[str]:
    """A warehouse's W_YTD is the sum of what HISTORY says was paid there."""
    if ytd != paid:
        yield f"3.3.2.8: warehouse {w_id} has W_YTD {ytd}, but the H_AMOUNT paid there make {paid}"


def condition_9(key: DistrictKey, ytd: int, paid: int) -> Iterator[str]:
    """A district's D_YTD is the sum of what HISTORY says was paid there."""
    if ytd != paid:
        yield f"3.3.2.9: district {key} has D_YTD {ytd}, but the H_AMOUNT paid there make {paid}"


def condition_10(key: CustomerKey, row: Customer, delivered: int, paid: int) -> Iterator[str]:
    """A customer's C_BALANCE is the OL_AMOUNT of its delivered orders without the H_AMOUNT that it has paid."""
    if row.balance != delivered - paid:
        yield (
            f"3.3.2.10: customer {key} has C_BALANCE {row.balance} rather than {delivered - paid}: "
            f"delivered OL_AMOUNT {delivered}, paid H_AMOUNT {paid}"
        )


def condition_11(key: DistrictKey, tally: OrdersTally, least: int, most: int) -> Iterator[str]:
    """A district has as many orders that are not in NEW_ORDER as were delivered, at the start and since.

    Which is between `least` and `most`, if there are Deliveries without an answer.
    """
    fewer = tally.orders - tally.new_orders
    if not least <= fewer <= most:
        delivered = f"{least}" if least == most else f"{least} to {most}"
        yield (
            f"3.3.2.11: district {key} has {tally.orders} orders and {tally.new_orders} rows of NEW_ORDER, "
            f"{fewer} fewer, but {delivered} were delivered"
        )


def condition_12(key: CustomerKey, row: Customer, delivered: int) -> Iterator[str]:
    """A customer's C_BALANCE and C_YTD_PAYMENT together are the OL_AMOUNT of its delivered orders."""
    if row.balance + row.ytd_payment != delivered:
        yield (
            f"3.3.2.12: customer {key} has C_BALANCE {row.balance} and C_YTD_PAYMENT {row.ytd_payment}, together "
            f"{row.balance + row.ytd_payment}, but delivered OL_AMOUNT {delivered}"
        )
