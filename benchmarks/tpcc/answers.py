"""The arguments and results of the five transactions. A result has the columns that a terminal would show (clauses
2.4.3 to 2.8.3), except those of the request. Payment leaves out further columns of rows that it reads anyway: the
addresses of warehouse, district and customer, C_PHONE, C_SINCE and C_CREDIT_LIM.

`warehouse.delivery` answers with a list: for each district the number of the order that it delivered, None if there was
none. `district.stock_level` answers with a number: how many of the items in the district's last 20 orders are short.
"""

from __future__ import annotations

from benchmarks.tpcc.tables import Row


class Wanted(Row):
    """A line of an order that is to be made: an item, the warehouse that supplies it, and how many."""

    i_id: int
    supply_w_id: int
    quantity: int


class OrderedLine(Row):
    """A line of an order that was made. `stock` is what is left; `brand_generic` is B or G (clause 2.4.2.2)."""

    i_name: str
    stock: int
    brand_generic: str
    price: int
    amount: int


class NewOrderAnswer(Row):
    """The result of `district.new_order`. `total` is in cents, after discount and taxes, rounded half up."""

    o_id: int
    entry_d: int
    c_last: str
    c_credit: str
    c_discount: int
    w_tax: int
    d_tax: int
    total: int
    lines: list[OrderedLine]


class PaidCustomer(Row):
    """The customer's part of a payment. `payment_cnt` numbers the row of HISTORY. `data` are the first 200 characters
    of C_DATA, only for bad credit.
    """

    c_id: int
    first: str
    middle: str
    last: str
    credit: str
    discount: int
    balance: int
    payment_cnt: int
    data: str


class PaymentAnswer(Row):
    """The result of `warehouse.payment`."""

    w_name: str
    d_name: str
    date: int
    customer: PaidCustomer


class StatusLine(Row):
    """A line of an order, as its customer sees it."""

    i_id: int
    supply_w_id: int
    quantity: int
    amount: int
    delivery_d: int | None


class OrderStatusAnswer(Row):
    """The result of `district.order_status`: the customer's last order."""

    c_id: int
    first: str
    middle: str
    last: str
    balance: int
    o_id: int
    entry_d: int
    carrier_id: int | None
    lines: list[StatusLine]
