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

TAKE: Final = """
WITH taken AS (DELETE FROM items WHERE customer_id = $1 RETURNING *)
SELECT taken.*, replicas.price AS known_price, replicas.version AS known_version
FROM taken LEFT JOIN replicas USING (seller_id, product_id) ORDER BY taken.seller_id, taken.product_id
"""
"""Empties a customer's cart; its lines with the copy's price and version, in the order of their keys."""
LOCK_STOCK: Final = """
SELECT seller_id, product_id, qty_available - qty_reserved, version, active, demand, low
FROM unnest($1::bigint[], $2::bigint[]) AS wanted (seller_id, product_id) JOIN stock_items USING (seller_id, product_id)
ORDER BY seller_id, product_id FOR UPDATE OF stock_items
"""
"""Locks the stock of sellers' products in the order of their keys, and reads it."""
UPDATE_STOCK: Final = """
UPDATE stock_items AS s
SET qty_available = s.qty_available - pieces, ytd = s.ytd + pieces, order_count = s.order_count + (pieces > 0)::int,
    demand = s.demand + asked, low = s.demand + asked > 4 * (s.qty_available - s.qty_reserved - pieces),
    updated_at = now()
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS a (seller_id, product_id, asked, pieces)
WHERE s.seller_id = a.seller_id AND s.product_id = a.product_id
"""
"""Takes pieces that are sold at once from the stock, and counts what was asked for."""
NUMBER: Final = """
WITH counted AS (
    UPDATE counts SET last_order_id = last_order_id + $2::boolean::int,
        success_payment_count = success_payment_count + $2::boolean::int,
        failed_reservation_count = failed_reservation_count + (NOT $2::boolean)::int
    WHERE customer_id = $1 RETURNING last_order_id
)
SELECT CASE WHEN $2 THEN max(last_order_id) END, count(*) > 0 FROM counted
"""
"""The customer's next order number, if there is an order, and whether there is this customer."""
END: Final = """
WITH ended AS (
    INSERT INTO checkouts VALUES ($1, $2, now(), $3, $4, CASE WHEN $3::bigint IS NULL THEN now() END,
        CASE WHEN $3::bigint IS NULL THEN 'NOT_RESERVED' ELSE '' END)
    ON CONFLICT DO NOTHING RETURNING order_id
), emptied AS (
    UPDATE carts SET products = 0, updated_at = now() WHERE customer_id = $1
), retried AS (
    DELETE FROM failures WHERE customer_id = $1 AND failed_at >= now() - interval '10 minutes'
), failed AS (
    INSERT INTO failures SELECT $1, $2, now(), 'NOT_RESERVED' FROM ended WHERE order_id IS NULL
), asked AS (
    INSERT INTO demand SELECT s, p, date_trunc('hour', now(), 'UTC'), q
    FROM unnest($5::bigint[], $6::bigint[], $7::bigint[]) AS a (s, p, q)
    ON CONFLICT (seller_id, product_id, hour) DO UPDATE SET quantity = demand.quantity + excluded.quantity
)
SELECT count(*) FROM ended
"""
"""What became of a customer's submission: its id, the order, refused lines, what was asked for. 0 if it came before."""
WARN: Final = "SELECT warn($1::low_change[])"
PLACE: Final = "SELECT place($1::buyer, $2, $3::order_line[])"
"""The rows of an order."""

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
