"""The standard's arithmetic for the audit, which never uses the functions that it audits.

Amounts are in cents, taxes and discounts in ten-thousandths.
"""

from __future__ import annotations

from typing import Final

RATE: Final = 10_000
"""A tax or discount of 100 %."""
QUANTITY_MIN: Final = 10
QUANTITY_MAX: Final = 100
"""S_QUANTITY begins within these bounds (clause 4.3.3.1), and stays there."""
RESTOCKED: Final = 91
"""The quantity added to S_QUANTITY when fewer than `QUANTITY_MIN` would be left."""
CUSTOMER_DATA_MAX: Final = 500
"""Characters of C_DATA, which begins with 300 at least."""
CUSTOMER_DATA_SHOWN: Final = 200
"""Characters of it that a Payment shows (clause 2.5.3.4)."""
BAD_CREDIT: Final = "BC"


def total_of(amounts: int, discount: int, taxes: int) -> int:
    """The price of an order, rounded half up: after the discount, with the taxes of warehouse and district."""
    return (amounts * (RATE - discount) * (RATE + taxes) + RATE * RATE // 2) // (RATE * RATE)


def left_of(quantity: int, taken: int) -> int:
    """The stock left after taking `taken` in all. The portions do not matter: there are 91 numbers from the least to
    the most, and 91 are added at a time.
    """
    return QUANTITY_MIN + (quantity - taken - QUANTITY_MIN) % RESTOCKED


def data_after(data: str, customer: tuple[int, int, int], w_id: int, d_id: int, amount: int) -> str:
    """C_DATA of a customer with bad credit after one payment more, at that warehouse and district (clause 2.5.2.2)."""
    c_w_id, c_d_id, c_id = customer
    return f"{c_id} {c_d_id} {c_w_id} {d_id} {w_id} {amount / 100:.2f} | {data}"[:CUSTOMER_DATA_MAX]


def middle(numbers: list[int]) -> int:
    """The selected customer among several of one name (clause 2.5.2.2): the one at position n/2, rounded up."""
    return numbers[(len(numbers) + 1) // 2 - 1]
