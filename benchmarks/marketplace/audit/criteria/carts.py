"""CART: a checkout is of what its customer has put into the cart since the last one, each line once, and no line costs
more than when it was shown. A price that rose is a discount; a price that fell is the customer's.

It needs the record of the requests. Where a request of a customer has no answer, what it might have done is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.asked import is_checkout, submitted
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import Asked, Ended, Kind, Place
from benchmarks.marketplace.values import CartItem, RequestedItem

Key = tuple[int, int]


class Put(NamedTuple):
    """A line as it was put in the cart."""

    quantity: int
    price: int
    freight: int
    voucher: int
    version: str


class Done(NamedTuple):
    """What a request has done to a cart at `place`: it has put `put` in it, or has emptied it."""

    place: Place
    key: Key
    put: Put | None


class Customer:
    """What is known of one customer's carts: what was done, in any order, and what may have been done some time.

    `known`: the cart has been empty since the record begins, or the record is complete.
    """

    __slots__ = ("done", "known", "may_be_emptied", "may_be_put")

    def __init__(self, known: bool) -> None:
        self.known = known
        self.done: list[Done] = []
        self.may_be_put: dict[Key, list[Put]] = {}
        self.may_be_emptied = False


def violations(run: Run) -> Iterator[Violation]:
    """Follows each cart through its requests, up to each of its checkouts."""
    customers: dict[int, Customer] = {}
    submissions: set[tuple[int, str]] = set()
    for asked in run.record:
        if asked.kind in (Kind.ADD, Kind.ABANDON):
            _take(customers.setdefault(asked.key, Customer(run.complete)), asked)
        elif is_checkout(asked):
            submissions.add((asked.key, submitted(asked).checkout_id))
    carts: dict[int, Iterator[Done]] = {}
    following: dict[int, Done | None] = {}
    contents: dict[int, dict[Key, Put]] = {}
    for number, known in customers.items():
        carts[number] = iter(sorted(known.done, key=lambda done: done.place))
        following[number] = next(carts[number], None)
        contents[number] = {}
    for told in run.history.of(events.reserve_stock):
        buyer = told.value.buyer
        number, cart = buyer.customer_id, contents.setdefault(buyer.customer_id, {})
        done = following.get(number)
        while done is not None and done.place < told.place:
            _follow(cart, done, customers[number])
            done = next(carts[number], None)
        following[number] = done
        known = customers.setdefault(number, Customer(run.complete))
        if (number, buyer.checkout_id) in submissions:
            yield from _compare(f"checkout {buyer.checkout_id} of customer {number}", told.value.items, cart, known)
        cart.clear()
        known.known = True


def _take(known: Customer, asked: Asked) -> None:
    if asked.ended is Ended.COMMITTED and asked.place is not None:
        if asked.kind is Kind.ABANDON:
            known.done.append(Done(asked.place, (0, 0), None))
        else:
            item = asked.argument_as(0, CartItem)
            known.done.append(Done(asked.place, (item.seller_id, item.product_id), _put(item)))
    elif asked.ended is Ended.UNKNOWN:
        if asked.kind is Kind.ABANDON:
            known.may_be_emptied = True
        else:
            item = asked.argument_as(0, CartItem)
            known.may_be_put.setdefault((item.seller_id, item.product_id), []).append(_put(item))


def _put(item: CartItem) -> Put:
    return Put(item.quantity, item.unit_price, item.freight_value, item.voucher, item.version)


def _follow(cart: dict[Key, Put], done: Done, customer: Customer) -> None:
    if done.put is None:
        cart.clear()
        customer.known = True
    else:
        cart[done.key] = done.put


def _compare(entity: str, items: list[RequestedItem], cart: dict[Key, Put], known: Customer) -> Iterator[Violation]:
    keys = [(item.seller_id, item.product_id) for item in items]
    missing = [] if known.may_be_emptied else sorted(cart.keys() - set(keys))
    if missing:
        yield Violation(Criterion.CART, entity, f"a checkout without {missing}", "all that was in the cart")
    if len(set(keys)) != len(keys):
        yield Violation(Criterion.CART, entity, f"lines {keys}", "each product once")
    for key, item in zip(keys, items, strict=True):
        put = [*([cart[key]] if key in cart else []), *known.may_be_put.get(key, [])]
        if not put and not known.known:
            continue
        if not put:
            yield Violation(Criterion.CART, f"{entity}, product {key}", "a line", "none: it was not in the cart")
        elif not any(_agrees(item, each) for each in put):
            expected = f"{put[0]}, with the rise since then as a discount"
            yield Violation(Criterion.CART, f"{entity}, product {key}", f"{item}", expected)
        elif all(_cost(item) > max(0, each.price * each.quantity - each.voucher) for each in put):
            expected = f"{put[0].price} a piece at most, as it was shown"
            yield Violation(Criterion.CART, f"{entity}, product {key}", f"{_cost(item)} for all", expected)


def _agrees(item: RequestedItem, put: Put) -> bool:
    line = (item.quantity, item.freight_value, item.voucher, item.version)
    if line != (put.quantity, put.freight, put.voucher, put.version):
        return False
    return item.price_discount == max(0, item.unit_price - put.price) * put.quantity


def _cost(item: Any) -> int:
    """What the customer pays for the line without freight, by the benchmark's definition."""
    total: int = item.unit_price * item.quantity
    paid: int = total - min(total, item.voucher + item.price_discount)
    return paid
