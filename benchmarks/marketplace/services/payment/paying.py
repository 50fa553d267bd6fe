"""An invoice is paid, or is not; everybody is told in the same transaction.

A payment is usually a transaction of its own, behind the checkout's. A provider is then asked with what an earlier
transaction has fixed, an invoice, so that no conflict can change the question: there is one charge for each invoice.
"""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace import charging, settings
from benchmarks.marketplace.answers import PaymentShown
from benchmarks.marketplace.archive import archive
from benchmarks.marketplace.charging import Answer
from benchmarks.marketplace.events import (
    PaymentArchived,
    PaymentConfirmed,
    PaymentFailed,
    TransactionMark,
    payment_archived,
    payment_confirmed,
    payment_failed,
    transaction_mark,
)
from benchmarks.marketplace.services.payment.rows import (
    PaymentCard,
    PaymentRow,
    PaymentStatus,
    cards,
    payment,
    payments,
)
from benchmarks.marketplace.values import Invoice, PaymentType
from styx import Context

STATUS = {
    Answer.APPROVED: PaymentStatus.SUCCEEDED,
    Answer.REJECTED: PaymentStatus.REQUIRES_PAYMENT_METHOD,
    Answer.UNREACHABLE: PaymentStatus.CANCELED,
}


@payment.register
async def pay(ctx: Context, invoice: Invoice) -> None:
    """Asks the provider, and tells everybody what it says."""
    if settings.PROVIDER:
        buyer = invoice.buyer
        text = await ctx.call_external(
            charging.charge,
            invoice.invoice_number,
            buyer.customer_id,
            invoice.total_invoice,
            buyer.payment_type.value,
        )
        answer = Answer(text)
    else:
        answer = charging.decide(invoice.invoice_number)
    await _keep(ctx, invoice, answer)
    _tell(ctx, invoice, answer)


def _tell(ctx: Context[Any, Any], invoice: Invoice, answer: Answer) -> None:
    """Emits E6 or E7 for those who are one entity each, and calls the stocks, which are many. The order and its sellers
    hear of a payment when it is packed; sellers are called if there will be no packages.
    """
    buyer, order_id, total, lines = invoice.buyer, invoice.order_id, invoice.total_invoice, invoice.lines
    paid = answer == Answer.APPROVED
    for each in lines:
        key = (each.seller_id, each.product_id)
        ctx.call_async("stock", "confirm" if paid else "release", key, (each.quantity,))
    if paid:
        ctx.emit(payment_confirmed, PaymentConfirmed(buyer, order_id, total, lines, ctx.now()))
    else:
        for seller_id in sorted({each.seller_id for each in lines}):
            ctx.call_async("seller", "payment_has_failed", seller_id, (ctx.key, order_id))
        ctx.emit(payment_failed, PaymentFailed(answer.value, buyer, order_id, total, lines, ctx.now()))
    status = "SUCCESS" if paid else "ABORT"
    ctx.emit(transaction_mark, TransactionMark(buyer.checkout_id, "CUSTOMER_SESSION", ctx.key, status, "payment"))


async def _keep(ctx: Context[Any, Any], invoice: Invoice, answer: Answer) -> None:
    """Writes what was asked for, and the vouchers if it was paid."""
    buyer, order_id, status = invoice.buyer, invoice.order_id, STATUS[answer]
    installments = 1 if buyer.payment_type == PaymentType.BOLETO else buyer.installments
    kind = buyer.payment_type.value
    rows = [PaymentRow(order_id, 1, kind, installments, invoice.total_invoice, status, ctx.now())]
    if answer == Answer.APPROVED:
        values = [each.total_incentive for each in invoice.lines if each.total_incentive]
        rows += [
            PaymentRow(order_id, number, "VOUCHER", 1, value, status, ctx.now())
            for number, value in enumerate(values, 2)
        ]
    found = []
    if buyer.payment_type != PaymentType.BOLETO:
        found = [
            PaymentCard(order_id, 1, buyer.card_number, buyer.card_holder_name, buyer.card_expiration, buyer.card_brand)
        ]
    for row in rows:
        await ctx.rows(payments).insert(row)
    for card in found:
        await ctx.rows(cards).insert(card)
    archive(ctx, payment_archived, PaymentArchived(ctx.key, invoice.invoice_number, rows, found))


@payment.register(read_only=True)
async def show(ctx: Context, order_id: int) -> PaymentShown:
    """The payments of an order; none if it is not paid yet."""
    return PaymentShown(
        await ctx.rows(payments).select(order_id=order_id), await ctx.rows(cards).select(order_id=order_id)
    )
