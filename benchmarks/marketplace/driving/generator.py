"""The requests of one client process, in the shares of a mix: whole sessions of customers, and in between what sellers
change, deliveries and dashboards.

The kinds are drawn in blocks, which have the shares exactly. Everything else is drawn when a request is sent, because a
cart and a price depend on what is known by then.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from benchmarks.driver.mixture import Mixture
from benchmarks.driver.share import Share
from benchmarks.driver.workload import NobodyIsFree, Planned
from benchmarks.marketplace.driving.board_sql import board_query
from benchmarks.marketplace.driving.changes import Changes
from benchmarks.marketplace.driving.mirror import Mirror
from benchmarks.marketplace.driving.sessions import Popularity, Session, Sessions
from benchmarks.marketplace.driving.settings import READ, SQL, Settings
from benchmarks.marketplace.driving.witness import Sent, Witness
from benchmarks.marketplace.population import goods
from benchmarks.marketplace.record import Kind
from benchmarks.marketplace.services.cart.rows import cart
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.seller.rows import seller
from benchmarks.marketplace.services.shipment.rows import QUEUE, queue
from benchmarks.marketplace.services.stock.rows import stock
from styx.messages import Reply

BLOCK: Final = 200
"""Transactions that have the mix's shares exactly."""
_LAST: Final = (Kind.CHECKOUT, Kind.CHECKOUT_AGAIN)


class Note(NamedTuple):
    """What is known of a request under way: its session, or the number of its product."""

    sent: Sent
    session: Session | None = None
    number: int | None = None


class MarketplaceGenerator:
    """A `Generator`, of client `client` of `clients`."""

    def __init__(self, settings: Settings, client: int, clients: int, seed: int) -> None:
        rng = random.Random(f"{seed} client {client} of {clients}")
        mirror, popularity = Mirror(settings, client, clients), Popularity(settings, rng)
        self._settings = settings
        self._client = client
        self._mirror = mirror
        self._popularity = popularity
        self._mixture = Mixture(settings.mixed.planned, rng)
        self._sessions = Sessions(settings, mirror, popularity, client, clients, rng)
        self._changes = Changes(settings, mirror, popularity, rng)
        self._witness = Witness(client, Share(settings.dashboards_kept, rng))
        self._deliveries = 0
        self._kinds: list[str] = []
        self._next: dict[str, Callable[[], Planned]] = {
            Kind.CHECKOUT: self._session,
            Kind.DELIVERY: self._delivery,
            Kind.DASHBOARD: self._dashboard,
            Kind.PRICE: lambda: self._change(Kind.PRICE, "set_price", self._changes.next_price),
            Kind.REPLACE: lambda: self._change(Kind.REPLACE, "replace", self._changes.next_replace),
            Kind.WITHDRAW: lambda: self._change(Kind.WITHDRAW, "delete", self._changes.next_withdrawal),
            Kind.RESTOCK: lambda: self._change(Kind.RESTOCK, "restock", self._changes.next_restock),
        }

    def next(self) -> Planned:
        """See `Generator.next`. While nobody is free for a kind, another kind of the block comes first."""
        if not self._kinds:
            self._kinds = self._mixture.next_block(BLOCK)
        refused: set[str] = set()
        for place in range(len(self._kinds) - 1, -1, -1):
            kind = self._kinds[place]
            if kind in refused:
                continue
            try:
                planned = self._next[kind]()
            except NobodyIsFree:
                refused.add(kind)
                continue
            del self._kinds[place]
            return planned
        raise NobodyIsFree

    def answered(self, planned: Planned, reply: Reply) -> list[Planned] | None:
        """See `Generator.answered`: a session goes on."""
        note: Note = planned.note
        self._witness.answered(planned, note.sent, reply)
        if note.session is not None:
            return self._went_on(note.session, planned, committed=reply.error is None)
        if note.number is not None and planned.kind != Kind.RESTOCK:
            self._changes.answered(planned.kind, note.number, reply)
        return None

    def unknown(self, planned: Planned) -> None:
        """See `Generator.unknown`."""
        note: Note = planned.note
        self._witness.unknown(planned, note.sent)
        if note.session is not None:
            self._went_on(note.session, planned, committed=False)
        elif note.number is not None and planned.kind != Kind.RESTOCK:
            self._changes.unknown(note.number)

    def witness(self) -> Any:
        """See `Generator.witness`."""
        return self._witness.report(list(self._mirror.changed()))

    def _session(self) -> Planned:
        session = self._sessions.begin()
        return self._step(session, "seal") if session.seal_first else self._further(session)[0]

    def _went_on(self, session: Session, planned: Planned, *, committed: bool) -> list[Planned] | None:
        """What follows a session's request. A step that fails, or has no reply, breaks the session."""
        session.requests -= 1
        if not committed:
            session.broken = True
        last = planned.kind in _LAST or (planned.kind == Kind.ABANDON and not session.seal_first)
        if not session.broken and not last:
            session.seal_first = False
            return self._further(session)
        if not session.requests:
            self._sessions.finish(session)
        return None

    def _further(self, session: Session) -> list[Planned]:
        """The session's next requests."""
        if session.wanted:
            return [self._step(session, "add_item", self._sessions.item(session.wanted.pop()))]
        if session.abandoned:
            return [self._step(session, "seal")]
        submission = self._sessions.submission(session)
        planned = self._of(session, Kind.CHECKOUT, "checkout", submission)
        if not session.resent:
            return [planned]
        return [planned, self._of(session, Kind.CHECKOUT_AGAIN, "checkout", submission)._replace(step=True)]

    def _step(self, session: Session, function: str, *arguments: Any) -> Planned:
        kind = Kind.ABANDON if function == "seal" else Kind.ADD
        return self._of(session, kind, function, *arguments)._replace(step=True)

    def _of(self, session: Session, kind: Kind, function: str, *arguments: Any) -> Planned:
        session.requests += 1
        sent = self._witness.sending(kind, session.checkout_id)
        return Planned(kind.value, cart, session.customer_id, function, arguments, False, Note(sent, session))

    def _delivery(self) -> Planned:
        self._deliveries += 1
        tid = f"{self._settings.run}-{self._client}-{self._deliveries}"
        sent = self._witness.sending(Kind.DELIVERY)
        return Planned(Kind.DELIVERY.value, queue, QUEUE, "update_delivery", (tid,), False, Note(sent))

    def _dashboard(self) -> Planned:
        sent = self._witness.sending(Kind.DASHBOARD)
        key, way = self._popularity.seller(), self._settings.dashboard
        query = board_query(key) if way == SQL else None
        return Planned(Kind.DASHBOARD.value, seller, key, "dashboard", (), False, Note(sent), way == READ, query)

    def _change(self, kind: Kind, function: str, drawn: Callable[[], tuple[int, tuple[Any, ...]]]) -> Planned:
        number, arguments = drawn()
        operator = stock if kind is Kind.RESTOCK else product
        note = Note(self._witness.sending(kind), number=number)
        return Planned(kind.value, operator, goods.key_of(self._settings, number), function, arguments, False, note)
