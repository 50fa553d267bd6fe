"""What the service of products keeps. A product is an entity; its key is (seller, product)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from benchmarks.marketplace.values import Cents, Version
from styx import Operator


class Offer(Struct, frozen=True):
    """What a seller says of a product."""

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    sku: str
    category: str
    description: str
    price: Cents
    freight_value: Cents
    status: str = "approved"


class Product(Struct, array_like=True):
    """A product. `version` changes when it is replaced, `change` with each price, replacement and deletion."""

    name: str
    sku: str
    category: str
    description: str
    price: Cents
    freight_value: Cents
    status: str
    version: Version
    active: bool
    created_at: datetime
    updated_at: datetime
    change: int = 0


product = Operator("product", key_type=tuple[int, int], state_type=Product)
