"""What the service of customers keeps. A customer is an entity; the counts are a row, to which transactions add without
a conflict.
"""

from __future__ import annotations

from msgspec import Struct

from styx import Operator


class Customer(Struct, array_like=True):
    """Who a customer is."""

    first_name: str
    last_name: str
    address: str
    complement: str
    birth_date: str
    zip_code: str
    city: str
    state: str
    card_number: str
    card_security_number: str
    card_expiration: str
    card_holder_name: str
    card_type: str
    data: str = ""


class CustomerCounts(Struct, array_like=True):
    """What a customer has done, as numbers that only grow."""

    customer_id: int
    success_payment_count: int = 0
    failed_payment_count: int = 0
    delivery_count: int = 0
    failed_reservation_count: int = 0
    abandoned_cart_count: int = 0


customer = Operator("customer", key_type=int, state_type=Customer)
counts = customer.table("counts", CustomerCounts, key="customer_id")
