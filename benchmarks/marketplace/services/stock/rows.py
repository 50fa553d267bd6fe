"""What the service of stock keeps. A stock item is an entity with one row; its key is (seller, product), as the
product's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.values import Id, ItemStatus, Version
from styx import Check, Operator, Ref

Count = Annotated[int, Meta(ge=0)]


class StockItem(Struct, array_like=True):
    """The pieces of a product: `qty_available` are all of them, `qty_reserved` those of them that orders wait to pay.

    `demand` is the number of pieces that were asked for in the last 28 days, refused ones too; `low` says that a week's
    share of it is more than what is left. `oldest_hour` and `latest_hour` are the first and the last row of `Demand`,
    None if there is none. Loaders leave these four at their defaults.
    """

    seller_id: Id
    product_id: Id
    qty_available: Count
    qty_reserved: Count
    order_count: Count
    ytd: Count
    data: str
    version: Version
    active: bool
    created_at: datetime
    updated_at: datetime
    demand: Count = 0
    low: bool = False
    oldest_hour: datetime | None = None
    latest_hour: datetime | None = None


class Demand(Struct, array_like=True):
    """How many pieces were asked for in the hour that begins at `hour`."""

    hour: datetime
    quantity: int


stock = Operator("stock", key_type=tuple[int, int])
stock_items = stock.table(
    "stock_items",
    StockItem,
    key=("seller_id", "product_id"),
    checks=[Check("reserved_is_available", lambda row: row.qty_reserved <= row.qty_available)],
    references=[Ref(("seller_id", "product_id"), product, on_delete="cascade")],
)
demand = stock.table("demand", Demand, key="hour")


class StockAnswer(Struct):
    """The answer to one line of a checkout. `qty_available`: how many pieces could have been reserved."""

    status: ItemStatus
    qty_available: int
