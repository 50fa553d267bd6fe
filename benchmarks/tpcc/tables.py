"""The nine tables of TPC-C (clause 1.3) as operators, and the two indexes that its transactions need. Rows only: what
happens to them is in the files of the transactions.

A row is an entity, its primary key the entity's key. Everything of a warehouse is in one partition, since every key
begins with the warehouse and `partition_key` is that number; so the catalogue ITEM, which no transaction writes, has a
copy for each warehouse. Columns of a key are not repeated in its row. Rows are arrays on the wire and in the state.

Amounts of money are whole cents, and rates (taxes, discounts) whole ten-thousandths, so that sums are exact. Times are
microseconds since 1970.
"""

from __future__ import annotations

import msgspec

from styx import Operator

DISTRICTS = 10
"""Districts of a warehouse, numbered from 1."""


def warehouse_of(key: tuple[int, ...]) -> int:
    """The partition key of every table but WAREHOUSE, whose key it is."""
    return key[0]


class Row(msgspec.Struct, array_like=True):
    """The base of all rows; it gives their form."""


class Address(Row):
    """The address of a warehouse, a district or a customer."""

    street_1: str
    street_2: str
    city: str
    state: str
    zip: str


class Warehouse(Row):
    """W_ID. `tax` in ten-thousandths, `ytd` in cents: all payments since the start."""

    name: str
    address: Address
    tax: int
    ytd: int


class District(Row):
    """D_W_ID, D_ID. `next_o_id` is the number of the next order."""

    name: str
    address: Address
    tax: int
    ytd: int
    next_o_id: int


class Customer(Row):
    """C_W_ID, C_D_ID, C_ID. `since` in microseconds, `discount` in ten-thousandths, other amounts in cents.

    `payment_cnt` also counts the customer's rows of HISTORY, `delivery_cnt` the orders delivered.
    """

    first: str
    middle: str
    last: str
    address: Address
    phone: str
    since: int
    credit: str
    credit_lim: int
    discount: int
    balance: int
    ytd_payment: int
    payment_cnt: int
    delivery_cnt: int
    data: str


class History(Row):
    """C_W_ID, C_D_ID, C_ID, and which of the customer's payments it is, from 1: HISTORY has no primary key of its own.

    `w_id` and `d_id` say where it was paid, `date` in microseconds, `amount` in cents.
    """

    w_id: int
    d_id: int
    date: int
    amount: int
    data: str


class NewOrder(Row):
    """NO_W_ID, NO_D_ID, NO_O_ID: an order that is not delivered yet. There is nothing more to it."""


class Order(Row):
    """O_W_ID, O_D_ID, O_ID. `carrier_id` is None until it is delivered; `all_local` is 1 or 0 as in the standard."""

    c_id: int
    entry_d: int
    carrier_id: int | None
    ol_cnt: int
    all_local: int


class OrderLine(Row):
    """OL_W_ID, OL_D_ID, OL_O_ID, OL_NUMBER (from 1). `delivery_d` is None until it is delivered; `amount` in cents."""

    i_id: int
    supply_w_id: int
    delivery_d: int | None
    quantity: int
    amount: int
    dist_info: str


class Item(Row):
    """The warehouse whose copy it is, I_ID. `price` in cents."""

    im_id: int
    name: str
    price: int
    data: str


class Stock(Row):
    """S_W_ID, S_I_ID. `dists` has S_DIST_01 to S_DIST_10."""

    quantity: int
    dists: list[str]
    ytd: int
    order_cnt: int
    remote_cnt: int
    data: str


_TWO = tuple[int, int]
_THREE = tuple[int, int, int]
_FOUR = tuple[int, int, int, int]

warehouse = Operator("warehouse", key_type=int, state_type=Warehouse)
district = Operator("district", key_type=_TWO, state_type=District, partition_key=warehouse_of)
customer = Operator("customer", key_type=_THREE, state_type=Customer, partition_key=warehouse_of)
history = Operator("history", key_type=_FOUR, state_type=History, partition_key=warehouse_of)
new_order = Operator("new_order", key_type=_THREE, state_type=NewOrder, partition_key=warehouse_of)
order = Operator("order", key_type=_THREE, state_type=Order, partition_key=warehouse_of)
order_line = Operator("order_line", key_type=_FOUR, state_type=OrderLine, partition_key=warehouse_of)
item = Operator("item", key_type=_TWO, state_type=Item, partition_key=warehouse_of)
stock = Operator("stock", key_type=_TWO, state_type=Stock, partition_key=warehouse_of)

customer_name = Operator(
    "customer_name", key_type=tuple[int, int, str], state_type=list[int], partition_key=warehouse_of
)
"""Index: C_W_ID, C_D_ID, C_LAST to the numbers of the customers of that name, in the order of their first names."""
customer_order = Operator("customer_order", key_type=_THREE, state_type=int, partition_key=warehouse_of)
"""Index: C_W_ID, C_D_ID, C_ID to the number of the customer's last order."""
undelivered = Operator("undelivered", key_type=_TWO, state_type=int, partition_key=warehouse_of)
"""Index: D_W_ID, D_ID to the number of the district's oldest order that is not delivered, or `next_o_id` for none."""
