"""The statements of the PostgreSQL line, one for each function of the application: one round trip and one transaction.

`schema.sql` has the tables, `checkout.sql` the checkout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
SCHEMA: Final = _FOLDER.joinpath("schema.sql").read_text("utf-8") + _FOLDER.joinpath("checkout.sql").read_text("utf-8")
"""Makes everything in an empty database."""

EMPTY_CART: Final = "MKT01"
UNKNOWN_CUSTOMER: Final = "MKT02"
SUBMITTED_BEFORE: Final = "MKT03"
"""SQLSTATEs that `checkout` raises; nothing has changed then."""

CHECKOUT: Final = "SELECT order_id, refused FROM checkout($1::buyer)"
"""A submission; a row of order id and refused lines."""
SUBMITTED: Final = "SELECT order_id, refused FROM checkouts WHERE customer_id = $1 AND checkout_id = $2"
"""What became of a submission, as `CHECKOUT` gives it."""

ADD_ITEM: Final = """
WITH added AS (
    INSERT INTO items VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $5)
    ON CONFLICT (customer_id, seller_id, product_id) DO UPDATE
    SET product_name = excluded.product_name, unit_price = excluded.unit_price,
        freight_value = excluded.freight_value, quantity = excluded.quantity, voucher = excluded.voucher,
        version = excluded.version, added_price = excluded.added_price
    RETURNING (xmax = 0)::int AS one_more
)
INSERT INTO carts (customer_id, products) SELECT $1, one_more FROM added
ON CONFLICT (customer_id) DO UPDATE SET updated_at = now(), products = carts.products + excluded.products
"""
"""A customer and the values of a `CartItem`. The check of the cart's products refuses too many."""
CART_IS_FULL: Final = "cart_is_full"
"""The name of that check."""

SEAL: Final = """
WITH dropped AS (DELETE FROM items WHERE customer_id = $1 RETURNING 1),
emptied AS (UPDATE carts SET products = 0, updated_at = now() WHERE customer_id = $1)
SELECT count(*) FROM dropped
"""
"""Empties a customer's cart, and says how many products were in it."""

SET_PRICE: Final = """
WITH changed AS (
    UPDATE products SET price = $3, change = change + 1, updated_at = now()
    WHERE seller_id = $1 AND product_id = $2 AND active AND version = $4
    RETURNING version, price, change, active
), copied AS (
    UPDATE replicas SET price = changed.price, version = changed.version, active = changed.active,
        change = changed.change
    FROM changed WHERE replicas.seller_id = $1 AND replicas.product_id = $2
)
SELECT 'UPDATED' AS outcome, version, price, change FROM changed
UNION ALL
SELECT 'STALE', version, price, change FROM products
WHERE seller_id = $1 AND product_id = $2 AND active AND NOT EXISTS (SELECT FROM changed)
"""
"""A seller, a product, its price and its version; the values of a `PriceResult`, or no row without such a product."""
