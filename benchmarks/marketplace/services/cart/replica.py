"""Copies of the products' prices, for the carts. A copy is an entity with the product's key; only its events change it.

`replica_with` makes the operator with one of four promises of how a copy follows its product.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Replication(StrEnum):
    """How copies follow products.

    TOGETHER: in the transaction that changes the product. SELLER: after it, in one order for all products of a seller,
    so who sees a change sees all earlier ones of that seller. OBJECT: after it, in the order of each product's changes.
    EVENTUAL: after it, at last the latest.
    """

    TOGETHER = "together"
    SELLER = "seller"
    OBJECT = "object"
    EVENTUAL = "eventual"


class Replica(Struct, array_like=True):
    """What a cart knows of a product. `change` is the product's number of this change."""

    price: int
    version: str
    active: bool
    change: int
