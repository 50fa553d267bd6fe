"""The rules of a checkout that has them in Python, on rows that a database might have given."""

from __future__ import annotations

from benchmarks.marketplace.postgres.checking_out import Stock, decided
from benchmarks.marketplace.services.cart.rows import CartItemRow
from benchmarks.marketplace.values import ItemStatus


def row(product_id: int = 1, quantity: int = 2, version: str = "v0", voucher: int = 0) -> CartItemRow:
    return CartItemRow(1, product_id, "tea", 10_00, 3_00, quantity, voucher, version, 10_00)


def stock(
    product_id: int = 1, available: int = 10, *, active: bool = True, demand: int = 0, low: bool = False
) -> Stock:
    return Stock(1, product_id, available, "v0", active, demand, low)


def test_a_line_is_reserved_at_the_copys_price() -> None:
    found = decided([(row(), 12_00, "v0")], [stock()])
    (line,) = found.lines
    assert (line.unit_price, line.total_items, line.total_incentive, line.total_amount) == (12_00, 24_00, 4_00, 20_00)
    assert (found.refused, found.asked, found.lows) == ([], [(1, 1, 2, 2)], [])


def test_the_lines_are_numbered_without_those_that_are_refused() -> None:
    rows = [(row(number), 10_00, "v0") for number in (1, 2, 3)]
    found = decided(rows, [stock(1), stock(2, active=False), stock(3)])
    assert [(line.order_item_id, line.product_id) for line in found.lines] == [(1, 1), (2, 3)]
    assert [(each.product_id, each.status) for each in found.refused] == [(2, ItemStatus.UNAVAILABLE)]
    assert found.asked == [(1, 1, 2, 2), (1, 2, 2, 0), (1, 3, 2, 2)]


def test_why_lines_are_refused() -> None:
    rows = [(row(1, 11), 10_00, "v0"), (row(2, 1, "v7"), 10_00, "v0"), (row(3), None, None)]
    found = decided(rows, [stock(1), stock(2)])
    assert found.lines == []
    assert [(each.status, each.qty_available) for each in found.refused] == [
        (ItemStatus.OUT_OF_STOCK, 10),
        (ItemStatus.UNAVAILABLE, 10),
        (ItemStatus.UNAVAILABLE, 0),
    ]
    assert len(found.asked) == 2, "nobody counts what is asked of a product that is unknown"


def test_that_too_little_is_left_is_told_when_it_changes() -> None:
    assert decided([(row(), 10_00, "v0")], [stock(demand=30)]).lows == []
    assert decided([(row(), 10_00, "v0")], [stock(demand=31)]).lows == [(1, 1, True, 8, 33)]
    assert decided([(row(), 10_00, "v0")], [stock(demand=31, low=True)]).lows == []
    assert decided([(row(), 10_00, "v0")], [stock(demand=10, low=True)]).lows == [(1, 1, False, 8, 12)]
