"""The nine tables of TPC-C (clause 1.3) as two operators with tables, and the two indexes that its transactions need.
Rows only: what happens to them is in the files of the transactions.

A warehouse is an entity that owns its rows of STOCK and ITEM. A district is an entity that owns its customers, their
orders and payments. WAREHOUSE and DISTRICT are these entities' states. Everything of a warehouse is in one partition,
since every key begins with the warehouse and `partition_key` is that number; so the catalogue ITEM, which no
transaction writes, has a copy for each warehouse. Rows are arrays on the wire and in the state.

A type such as `Stock` has the columns that an audit compares. The row of a table, such as `StockRow`, also has the
columns of its primary key behind them. The columns of the entity's key are in no row.

Amounts of money are whole cents, and rates (taxes, discounts) whole ten-thousandths, so that sums are exact. Times are
microseconds since 1970.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from styx import Index, Operator

DISTRICTS = 10
"""Districts of a warehouse, numbered from 1."""


def warehouse_of(key: tuple[int, ...]) -> int:
    """The partition key of a district."""
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

    first_name: str
    middle: str
    last_name: str
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


class CustomerRow(Customer):
    """A row of CUSTOMER, by C_ID."""

    c_id: int


class HistoryRow(History):
    """A row of HISTORY, by C_ID and the number of the payment."""

    c_id: int
    number: int


class NewOrderRow(NewOrder):
    """A row of NEW-ORDER, by NO_O_ID."""

    o_id: int


class OrderRow(Order):
    """A row of ORDER, by O_ID."""

    o_id: int


class OrderLineRow(OrderLine):
    """A row of ORDER-LINE, by OL_O_ID and OL_NUMBER."""

    o_id: int
    number: int


class ItemRow(Item):
    """A row of ITEM, by I_ID."""

    i_id: int


class StockRow(Stock):
    """A row of STOCK, by S_I_ID."""

    i_id: int


R = TypeVar("R", bound=Row)


def with_key(kind: type[R], columns: Row, *key: int) -> R:
    """The row of type `kind`, such as `StockRow`, with these columns and this primary key."""
    return kind(*msgspec.structs.astuple(columns), *key)


warehouse = Operator("warehouse", key_type=int, state_type=Warehouse)
item = warehouse.table("item", ItemRow, key="i_id")
stock = warehouse.table("stock", StockRow, key="i_id")

district = Operator("district", key_type=tuple[int, int], state_type=District, partition_key=warehouse_of)
customer = district.table(
    "customer", CustomerRow, key="c_id", indexes=[Index("by_name", equal="last_name", order="first_name")]
)
history = district.table("history", HistoryRow, key=("c_id", "number"))
new_order = district.table("new_order", NewOrderRow, key="o_id")
order = district.table("order", OrderRow, key="o_id", indexes=[Index("by_customer", equal="c_id")])
order_line = district.table("order_line", OrderLineRow, key=("o_id", "number"))
