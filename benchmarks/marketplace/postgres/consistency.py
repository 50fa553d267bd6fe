"""The check of what the PostgreSQL line leaves behind, so that one that is wrong cannot look fast: the tables against
each other, and against what the clients have been told.

It is for a run of checkouts and price updates on tables that were just filled.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import asyncpg
import msgspec

from benchmarks.driver.workload import Audit
from benchmarks.marketplace.answers import CheckoutOutcome, CheckoutResult, PriceOutcome, PriceResult
from benchmarks.marketplace.record import Asked, Ended, Kind, Record
from benchmarks.marketplace.values import CartItem, RefusedItem

SHOWN_MAX: Final = 5
"""Rows of a violation of one kind that are told."""

TABLES: Final[Mapping[str, str]] = {
    "pieces come from nowhere and go nowhere but into orders, and none is sold twice": """
        SELECT s.seller_id, s.product_id, s.qty_available, s.qty_reserved, s.ytd, s.order_count
        FROM stock_items s JOIN stock_loaded b USING (seller_id, product_id) LEFT JOIN (
            SELECT seller_id, product_id, sum(quantity) AS pieces, count(*) AS lines
            FROM order_items JOIN new_orders USING (customer_id, order_id) GROUP BY seller_id, product_id
        ) AS sold USING (seller_id, product_id)
        WHERE s.qty_available < 0 OR s.qty_reserved <> b.qty_reserved
            OR s.qty_available <> b.qty_available - coalesce(pieces, 0) OR s.ytd <> b.ytd + coalesce(pieces, 0)
            OR s.order_count <> b.order_count + coalesce(lines, 0)
    """,
    "demand is the sum of its hours": """
        SELECT seller_id, product_id, demand, hours FROM stock_items LEFT JOIN (
            SELECT seller_id, product_id, sum(quantity) AS hours FROM demand GROUP BY seller_id, product_id
        ) AS of_hours USING (seller_id, product_id) WHERE demand <> coalesce(hours, 0)
    """,
    "too little left is told": """
        SELECT seller_id, product_id, low FROM stock_items FULL JOIN low_stock AS told USING (seller_id, product_id)
        WHERE low <> (stock_items.demand > 4 * (qty_available - qty_reserved)) OR low <> (told.level IS NOT NULL)
    """,
    "a copy is as its product": """
        SELECT p.seller_id, p.product_id FROM products p FULL JOIN replicas r USING (seller_id, product_id)
        WHERE (p.price, p.version, p.active, p.change) IS DISTINCT FROM (r.price, r.version, r.active, r.change)
    """,
    "an order is the sum of its lines, paid, packed, and with its sellers": """
        SELECT o.customer_id, o.order_id FROM new_orders o WHERE NOT coalesce(
            (o.count_items, o.total_items, o.total_incentive, o.total_amount, o.total_freight, o.total_invoice) = (
                SELECT count(*), sum(total_items), sum(total_incentive), sum(total_amount), sum(freight_value),
                    sum(total_amount + freight_value)
                FROM order_items i WHERE (i.customer_id, i.order_id) = (o.customer_id, o.order_id))
            AND (o.total_invoice, o.total_incentive) = (
                SELECT sum(value) FILTER (WHERE sequential = 1),
                    coalesce(sum(value) FILTER (WHERE type = 'VOUCHER'), 0)
                FROM payments p WHERE (p.customer_id, p.order_id) = (o.customer_id, o.order_id))
            AND (o.count_items, o.total_freight) = (
                SELECT package_count, total_freight_value FROM shipments s
                WHERE (s.customer_id, s.order_id) = (o.customer_id, o.order_id))
            AND (o.count_items, o.total_items) = (
                SELECT count(*), sum(e.total_items)
                FROM packages p JOIN order_entries e USING (customer_id, order_id, seller_id, product_id)
                JOIN entry_details d USING (seller_id, customer_id, order_id)
                WHERE (customer_id, order_id) = (o.customer_id, o.order_id))
            AND 3 = (SELECT count(*) FROM order_history h
                WHERE (h.customer_id, h.order_id) = (o.customer_id, o.order_id)), false)
    """,
    "a submission and its order are one": """
        SELECT customer_id, order_id, checkout_id
        FROM new_orders o
        FULL JOIN new_checkouts c
        USING (customer_id, order_id, checkout_id) WHERE o.status IS NULL OR c.at IS NULL
    """,
    "a customer's counts are those of the orders": """
        SELECT customer_id, success_payment_count, last_order_id FROM counts LEFT JOIN (
            SELECT customer_id, count(*) AS paid, max(order_id) AS last FROM orders GROUP BY customer_id
        ) AS theirs USING (customer_id)
        WHERE success_payment_count <> coalesce(paid, 0) OR last_order_id <> coalesce(last, 0)
    """,
}
"""What holds among the tables; each query gives the rows of which it does not."""


async def checked(arguments: Mapping[str, Any], record: Record) -> Audit:
    """The database that `arguments` of `asyncpg.connect` name, when no request is under way."""
    connection = await asyncpg.connect(**arguments)
    try:
        violations = [
            f"{what}: {', '.join(str(dict(row)) for row in rows[:SHOWN_MAX])} and {len(rows)} in all"
            for what, sql in TABLES.items()
            if (rows := await connection.fetch(sql))
        ]
        told = _Told(record)
        lines = await connection.fetch(
            "SELECT checkout_id, customer_id, order_id, seller_id, product_id, quantity "
            "FROM new_orders JOIN order_items USING (customer_id, order_id)"
        )
        violations += _of_orders(told, lines)
        violations += _of_prices(told, await connection.fetch("SELECT * FROM products"))
    finally:
        await connection.close()
    checked = [*TABLES, f"{len(told.results)} checkouts and {told.prices.total()} prices are as they were told"]
    return Audit(checked, violations)


class _Told:
    """What the clients know: sessions by checkout id, and products by key."""

    def __init__(self, record: Record) -> None:
        self.carts: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
        self.results: dict[str, CheckoutResult] = {}
        self.unknown: set[str] = set()
        self.prices: Counter[tuple[int, int]] = Counter()
        self.last_price: dict[tuple[int, int], PriceResult] = {}
        self.uncertain: set[tuple[int, int]] = set()
        for asked in record:
            self._take(asked)

    def _take(self, asked: Asked) -> None:
        known = asked.ended is not Ended.UNKNOWN
        if asked.kind is Kind.ADD and asked.ended is Ended.COMMITTED:
            item = asked.argument_as(0, CartItem)
            self.carts[asked.session][item.seller_id, item.product_id] = item.quantity
        elif asked.kind is Kind.CHECKOUT and asked.ended is Ended.COMMITTED:
            self.results[asked.session] = asked.result_as(CheckoutResult)
        elif asked.kind is Kind.CHECKOUT and not known:
            self.unknown.add(asked.session)
        elif asked.kind is Kind.PRICE:
            key = msgspec.convert(asked.key, tuple[int, int])
            if not known:
                self.uncertain.add(key)
            elif asked.ended is Ended.COMMITTED:
                result = asked.result_as(PriceResult)
                if result.outcome is PriceOutcome.UPDATED:
                    self.prices[key] += 1
                    self.last_price[key] = result


def _of_orders(told: _Told, lines: list[Any]) -> Iterator[str]:
    """An accepted checkout has the order that its client was told of, with all of the cart that was not refused."""
    ordered: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
    number: dict[str, int] = {}
    for line in lines:
        ordered[line["checkout_id"]][line["seller_id"], line["product_id"]] = line["quantity"]
        number[line["checkout_id"]] = line["order_id"]
    for session, result in told.results.items():
        if result.order_id != number.get(session):
            yield f"checkout {session}: its client was told of order {result.order_id}, there is {number.get(session)}"
        if (result.outcome is CheckoutOutcome.ACCEPTED) != (result.order_id is not None):
            yield f"checkout {session} is {result.outcome} with order {result.order_id}"
        refused = {_key(each): each.quantity for each in result.refused}
        if ordered.get(session, {}) | refused != told.carts[session] or ordered.get(session, {}).keys() & refused:
            yield f"checkout {session}: in the cart was {told.carts[session]}, ordered {ordered.get(session)}"
    for session in number.keys() - told.results.keys() - told.unknown:
        yield f"order {number[session]} of checkout {session}, which no client has submitted"


def _of_prices(told: _Told, products: list[Any]) -> Iterator[str]:
    """A product has as many changes as clients were told of, and the last one's price."""
    for row in products:
        key = row["seller_id"], row["product_id"]
        if key in told.uncertain:
            continue
        last = told.last_price.get(key)
        if row["change"] != told.prices[key]:
            yield f"product {key} has {row['change']} changes, its clients were told of {told.prices[key]}"
        if last is not None and (last.price, last.version, last.change) != (
            row["price"],
            row["version"],
            row["change"],
        ):
            yield f"product {key} costs {row['price']}, its client was told {last.price}"


def _key(item: RefusedItem) -> tuple[int, int]:
    return item.seller_id, item.product_id
