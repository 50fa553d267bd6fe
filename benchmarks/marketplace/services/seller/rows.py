"""What the service of sellers keeps: sellers, and of each one the lines of its open orders. Lines of orders that are
concluded or whose payment has failed are archived as events, and are no longer here.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from benchmarks.marketplace.values import OrderStatus, PackageStatus
from styx import Index, Operator, Ref


class Seller(Struct, array_like=True):
    """Who a seller is."""

    name: str
    company_name: str
    email: str
    phone: str
    mobile_phone: str
    cpf: str
    cnpj: str
    address: str
    complement: str
    city: str
    state: str
    zip_code: str


class EntryDetails(Struct, array_like=True):
    """An open order of a seller: its customer's part, once for all its entries."""

    customer_id: int
    order_id: int
    first_name: str
    last_name: str
    street: str
    complement: str
    zip_code: str
    city: str
    state: str
    card_brand: str
    installments: int


class OrderEntry(Struct, array_like=True):
    """A line of an open order of a seller. `total_invoice` is `total_amount` and `freight_value`."""

    customer_id: int
    order_id: int
    product_id: int
    natural_key: str
    package_id: int | None
    product_name: str
    product_category: str | None
    unit_price: int
    quantity: int
    total_items: int
    total_amount: int
    total_incentive: int
    freight_value: int
    total_invoice: int
    shipment_date: datetime | None
    delivery_date: datetime | None
    order_status: OrderStatus
    delivery_status: PackageStatus | None


class LowStock(Struct, array_like=True):
    """A product of the seller of which too little is left, and what was said of it."""

    product_id: int
    level: int
    demand: int
    since: datetime


seller = Operator("seller", key_type=int, state_type=Seller)
entry_details = seller.table("entry_details", EntryDetails, key=("customer_id", "order_id"))
order_entries = seller.table(
    "order_entries",
    OrderEntry,
    key=("customer_id", "order_id", "product_id"),
    references=[Ref(("customer_id", "order_id"), entry_details, on_delete="cascade")],
)
low_stock = seller.table("low_stock", LowStock, key="product_id", indexes=[Index("by_level", order="level")])

open_orders = entry_details.view("open_orders")
board = order_entries.view(
    "board", sum=("total_amount", "freight_value", "total_incentive", "total_invoice", "total_items")
)
open_products = order_entries.view("open_products", group_by="product_id")
