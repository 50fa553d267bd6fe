"""Sessions of customers: a customer who is idle fills a cart, and checks it out or leaves it. No customer has two
sessions at once: one is idle again when the session's last request is answered.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Final

from benchmarks.driver.share import Share
from benchmarks.driver.workload import NobodyIsFree
from benchmarks.driver.zipf import zipf_ranks
from benchmarks.marketplace.driving.mirror import Mirror
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import goods, people
from benchmarks.marketplace.values import CartItem, CustomerCheckout, PaymentType

DRAWS_MAX: Final = 200
"""Draws of a product that is not in the cart yet; if all are there, the cart stays smaller."""
VOUCHER_SHARE: Final = 10
"""A voucher is at most this part of one piece's price."""


class Wanted:
    """A line that a customer will put into the cart."""

    __slots__ = ("number", "pieces", "voucher")

    def __init__(self, number: int, pieces: int, voucher: bool) -> None:
        self.number = number
        self.pieces = pieces
        self.voucher = voucher


class Session:
    """One customer's way from an empty cart to its checkout. `requests` are under way. `seal_first`: the last session
    broke, so the cart is emptied first.
    """

    __slots__ = ("abandoned", "broken", "checkout_id", "customer_id", "requests", "resent", "seal_first", "wanted")

    def __init__(self, customer_id: int, checkout_id: str, wanted: list[Wanted]) -> None:
        self.customer_id = customer_id
        self.checkout_id = checkout_id
        self.wanted = wanted
        self.abandoned = False
        self.resent = False
        self.seal_first = False
        self.broken = False
        self.requests = 0


class Popularity:
    """Draws sellers, and products: a seller first, then one of its products."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        skew = settings.mixed.skew
        self._settings = settings
        self.seller_rank = zipf_ranks(settings.sellers, skew.sellers, rng)
        self._product_ranks = {
            count: zipf_ranks(count, skew.products, rng)
            for count in {settings.products_of(1), settings.products_of(settings.sellers)}
        }

    def seller(self) -> int:
        """A seller's id."""
        return self.seller_rank() + 1

    def product(self) -> int:
        """A product's number."""
        return self.product_of(self.seller())

    def product_of(self, seller_id: int) -> int:
        """The number of one of this seller's products."""
        rank = self._product_ranks[self._settings.products_of(seller_id)]()
        return goods.number_of(self._settings, (seller_id, rank + 1))


class Sessions:
    """The sessions of one client process, which has every `clients`th customer."""

    def __init__(
        self, settings: Settings, mirror: Mirror, popularity: Popularity, client: int, clients: int, rng: random.Random
    ) -> None:
        self._settings = settings
        self._carts = settings.mixed.carts
        self._mirror = mirror
        self._popularity = popularity
        self._rng = rng
        self._client = client
        self._made = 0
        customers = [*range(client + 1, settings.customers + 1, clients)]
        rng.shuffle(customers)
        self._idle = deque(customers)
        self._unsealed: set[int] = set()
        self._vouchers = Share(self._carts.voucher, rng)
        self._abandoned = Share(self._carts.abandoned, rng)
        self._resent = Share(settings.resent, rng)

    @property
    def idle(self) -> int:
        """How many customers are idle."""
        return len(self._idle)

    def begin(self) -> Session:
        """The session of the customer who has been idle for the longest time. Raises `NobodyIsFree`."""
        if not self._idle:
            raise NobodyIsFree
        customer_id = self._idle.popleft()
        self._made += 1
        session = Session(customer_id, f"{self._settings.run}-{self._client}-{self._made}", self._wishes())
        session.seal_first = customer_id in self._unsealed
        self._unsealed.discard(customer_id)
        (session.abandoned,) = self._abandoned.next_block(1)
        if not session.abandoned:
            (session.resent,) = self._resent.next_block(1)
        return session

    def finish(self, session: Session) -> None:
        """Its customer is idle again."""
        if session.broken:
            self._unsealed.add(session.customer_id)
        self._idle.append(session.customer_id)

    def item(self, wanted: Wanted) -> CartItem:
        """The line as the customer sees it now."""
        known = self._mirror.known(wanted.number)
        voucher = self._rng.randint(1, max(known.price // VOUCHER_SHARE, 1)) if wanted.voucher else 0
        seller_id, product_id = goods.key_of(self._settings, wanted.number)
        return CartItem(
            seller_id,
            product_id,
            goods.name_of(wanted.number),
            known.price,
            goods.freights(self._settings)[wanted.number],
            wanted.pieces,
            voucher,
            known.version,
        )

    def submission(self, session: Session) -> CustomerCheckout:
        """What is sent to check the cart out."""
        who = people.customer(self._settings, session.customer_id)
        kind = self._rng.choice(_PAYMENT_TYPES)
        return CustomerCheckout(
            customer_id=session.customer_id,
            checkout_id=session.checkout_id,
            first_name=who.first_name,
            last_name=who.last_name,
            street=who.address,
            complement=who.complement,
            city=who.city,
            state=who.state,
            zip_code=who.zip_code,
            payment_type=kind,
            installments=self._rng.randint(1, 10) if kind is PaymentType.CREDIT_CARD else 1,
            card_number=who.card_number,
            card_holder_name=who.card_holder_name,
            card_expiration=who.card_expiration,
            card_brand=who.card_type,
            card_security_number=who.card_security_number,
        )

    def _wishes(self) -> list[Wanted]:
        carts, rng, popularity = self._carts, self._rng, self._popularity
        count = rng.randint(*carts.products)
        only = popularity.seller() if carts.one_seller else None
        numbers: dict[int, None] = {}
        for _ in range(DRAWS_MAX):
            if len(numbers) == count:
                break
            numbers[popularity.product() if only is None else popularity.product_of(only)] = None
        vouchers = self._vouchers.next_block(len(numbers))
        return [Wanted(each, rng.randint(*carts.pieces), own) for each, own in zip(numbers, vouchers, strict=True)]


_PAYMENT_TYPES: Final = tuple(PaymentType)
