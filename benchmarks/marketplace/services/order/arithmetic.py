"""The money of an order, in cents.

A voucher and a discount are for a whole line, and never pay freight. Freight is paid once for each line.
"""

from __future__ import annotations

from benchmarks.marketplace.values import OrderLine, RequestedItem


def line(number: int, item: RequestedItem) -> OrderLine:
    """The line of an order, with its incentive: voucher and discount, at most what the pieces cost."""
    total_items = item.unit_price * item.quantity
    incentive = min(item.voucher + item.price_discount, total_items)
    return OrderLine(
        number,
        item.seller_id,
        item.product_id,
        item.product_name,
        item.unit_price,
        item.freight_value,
        item.quantity,
        total_items,
        incentive,
        total_items - incentive,
        item.version,
    )


def total_invoice(lines: list[OrderLine]) -> int:
    """What the customer pays."""
    return sum(line.total_amount + line.freight_value for line in lines)
