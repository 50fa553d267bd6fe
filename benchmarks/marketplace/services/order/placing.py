"""An order is placed: it gets its number and its invoice, each seller hears of its lines, and the payment begins."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from benchmarks.marketplace import settings
from benchmarks.marketplace.answers import OrderShown
from benchmarks.marketplace.errors import UnknownOrder
from benchmarks.marketplace.events import InvoiceIssued, invoice_issued
from benchmarks.marketplace.services.order import arithmetic
from benchmarks.marketplace.services.order.rows import (
    Order,
    OrderHistory,
    OrderItem,
    order,
    order_history,
    order_items,
    orders,
)
from benchmarks.marketplace.values import Buyer, Invoice, OrderLine, OrderStatus, RequestedItem
from styx import Context

SHIPPING_LIMIT: Final = timedelta(days=3)


@order.register
async def place(ctx: Context, buyer: Buyer, items: list[RequestedItem]) -> int:
    """Makes an order of lines that are reserved, and gives its number, the customer's next."""
    last = await ctx.rows(orders).keys(last=1)
    order_id = last[0] + 1 if last else 1
    lines = [arithmetic.line(number, item) for number, item in enumerate(items, 1)]
    invoice = Invoice(
        buyer=buyer,
        order_id=order_id,
        invoice_number=invoice_number(ctx.key, ctx.now(), order_id),
        issue_date=ctx.now(),
        total_invoice=arithmetic.total_invoice(lines),
        lines=lines,
    )
    await _keep(ctx, invoice)
    for seller_id in sorted({each.seller_id for each in lines}):
        theirs = [each for each in lines if each.seller_id == seller_id]
        ctx.emit(invoice_issued, InvoiceIssued(seller_id, _with_lines(invoice, theirs)))
    if settings.PAYMENT == "together":
        ctx.call_async("payment", "pay", ctx.key, (invoice,))
    else:
        ctx.after_commit("payment", "pay", ctx.key, (invoice,))
    return order_id


async def _keep(ctx: Context[Any, Any], invoice: Invoice) -> None:
    await ctx.rows(orders).insert(_order(invoice))
    for each in invoice.lines:
        await ctx.rows(order_items).insert(_item(invoice, each))
    await ctx.rows(order_history).insert(OrderHistory(invoice.order_id, ctx.now(), OrderStatus.INVOICED))


def invoice_number(customer_id: int, at: datetime, order_id: int) -> str:
    """Names the invoice, also to the payment provider; unique, because a customer's order numbers grow."""
    return f"{customer_id}-{at:%Y%m%d}-{order_id}"


def _order(invoice: Invoice) -> Order:
    lines, at = invoice.lines, invoice.issue_date
    return Order(
        order_id=invoice.order_id,
        checkout_id=invoice.buyer.checkout_id,
        invoice_number=invoice.invoice_number,
        status=OrderStatus.INVOICED,
        purchase_date=at,
        payment_date=None,
        delivered_carrier_date=None,
        delivered_customer_date=None,
        estimated_delivery_date=None,
        count_items=len(lines),
        total_amount=sum(each.total_amount for each in lines),
        total_freight=sum(each.freight_value for each in lines),
        total_incentive=sum(each.total_incentive for each in lines),
        total_invoice=invoice.total_invoice,
        total_items=sum(each.total_items for each in lines),
        created_at=at,
        updated_at=at,
    )


def _item(invoice: Invoice, each: OrderLine) -> OrderItem:
    return OrderItem(
        invoice.order_id,
        each.order_item_id,
        each.seller_id,
        each.product_id,
        each.product_name,
        each.unit_price,
        each.freight_value,
        each.quantity,
        each.total_items,
        each.total_incentive,
        each.total_amount,
        invoice.issue_date + SHIPPING_LIMIT,
    )


def _with_lines(invoice: Invoice, lines: list[OrderLine]) -> Invoice:
    return Invoice(
        buyer=invoice.buyer,
        order_id=invoice.order_id,
        invoice_number=invoice.invoice_number,
        issue_date=invoice.issue_date,
        total_invoice=invoice.total_invoice,
        lines=lines,
    )


@order.register(read_only=True)
async def show(ctx: Context, order_id: int) -> OrderShown:
    """An order with its lines and its history. Raises `UnknownOrder`."""
    found = await ctx.rows(orders).get(order_id)
    if found is None:
        raise UnknownOrder(f"customer {ctx.key} has no order {order_id}")
    return OrderShown(
        found,
        await ctx.rows(order_items).select(order_id=order_id),
        await ctx.rows(order_history).select(order_id=order_id),
    )
