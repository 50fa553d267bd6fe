"""What the service of payments keeps. An entity is a customer with all payments of that customer."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from styx import Operator, Ref


class PaymentStatus(StrEnum):
    """How a payment ended."""

    SUCCEEDED = "succeeded"
    REQUIRES_PAYMENT_METHOD = "requires_payment_method"
    CANCELED = "canceled"


class PaymentRow(Struct, array_like=True):
    """A line of a payment: the first one is what the provider was asked for, the others are vouchers."""

    order_id: int
    sequential: int
    type: str
    installments: int
    value: Annotated[int, Meta(ge=0)]
    status: PaymentStatus
    created_at: datetime


class PaymentCard(Struct, array_like=True):
    """The card of a payment's first line. Its security number is not kept."""

    order_id: int
    sequential: int
    card_number: str
    card_holder_name: str
    card_expiration: str
    card_brand: str


payment = Operator("payment", key_type=int)
payments = payment.table("payments", PaymentRow, key=("order_id", "sequential"))
cards = payment.table(
    "cards",
    PaymentCard,
    key=("order_id", "sequential"),
    references=[Ref(("order_id", "sequential"), payments)],
)
