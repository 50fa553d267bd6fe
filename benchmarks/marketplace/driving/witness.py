"""What one client saw: it packs each request with its reply for the record, and counts. It judges nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from benchmarks.driver.share import Share
from benchmarks.driver.workload import Planned
from benchmarks.marketplace.answers import Board
from benchmarks.marketplace.record import (
    CHUNK,
    Asked,
    DashboardSeen,
    Ended,
    Kind,
    MarkSeen,
    Mirrored,
    Place,
    Record,
    now_us,
    pack,
)
from benchmarks.marketplace.services.seller.rows import OrderEntry
from styx.messages import Reply

_COLUMNS = {
    name: OrderEntry.__struct_fields__.index(name)
    for name in (
        *("customer_id", "order_id", "product_id", "total_amount", "freight_value"),
        *("total_incentive", "total_invoice", "total_items"),
    )
}


class Sent(NamedTuple):
    """What the witness keeps of a request while it is under way; the `note` of a `Planned` has it."""

    number: int
    sent_us: int
    session: str


class Witness:
    """Of client `client`. `kept` says of which dashboards all entries are recorded."""

    def __init__(self, client: int, kept: Share) -> None:
        self._client = client
        self._kept = kept
        self._sent: Counter[Kind] = Counter()
        self._number = 0
        self._open: list[Asked] = []
        self._chunks: list[bytes] = []

    def sending(self, kind: Kind, session: str = "") -> Sent:
        """A request of this kind is sent now."""
        self._number += 1
        self._sent[kind] += 1
        return Sent(self._number, now_us(), session)

    def answered(self, planned: Planned, sent: Sent, reply: Reply) -> None:
        """Takes the reply, committed or not."""
        error, result = reply.error, reply.result
        if error is None:
            ended, why = Ended.COMMITTED, ""
            if planned.kind == Kind.DASHBOARD:
                result = self._seen(planned.key, result)
        elif error.code == "aborted":
            ended, why, result = Ended.ABORTED, error.type, error.message
        else:
            ended, why, result = Ended.REJECTED, error.code, error.message
        place = Place(reply.epoch, reply.phase, reply.tid) if ended is not Ended.REJECTED else None
        self._keep(planned, sent, ended, why, result, place)

    def unknown(self, planned: Planned, sent: Sent) -> None:
        """No reply came."""
        self._keep(planned, sent, Ended.UNKNOWN, "", None, None)

    def report(self, mirror: list[Mirrored]) -> dict[str, Any]:
        """All of it, as plain data. More may follow."""
        self._pack()
        return {
            "chunks": self._chunks,
            "sent": dict(self._sent),
            "mirror": [_plain(each) for each in mirror],
        }

    def _keep(self, planned: Planned, sent: Sent, ended: Ended, why: str, result: Any, place: Place | None) -> None:
        self._open.append(
            Asked(
                client=self._client,
                number=sent.number,
                kind=Kind(planned.kind),
                session=sent.session,
                key=planned.key,
                function=planned.function,
                arguments=list(planned.arguments),
                sent_us=sent.sent_us,
                ended_us=now_us(),
                ended=ended,
                error=why,
                result=result,
                place=place,
            )
        )
        if len(self._open) >= CHUNK:
            self._pack()

    def _pack(self) -> None:
        if self._open:
            self._chunks.append(pack(self._open))
            self._open = []

    def _seen(self, seller_id: int, dashboard: dict[str, Any]) -> DashboardSeen:
        """The dashboard with the sums of its entries, made here: they must be the board."""
        entries: list[list[Any]] = dashboard["entries"]
        column = {name: [entry[place] for entry in entries] for name, place in _COLUMNS.items()}
        summed = Board(
            seller_id,
            len(set(zip(column["customer_id"], column["order_id"], strict=True))),
            len(set(column["product_id"])),
            len(entries),
            *(sum(column[name]) for name in ("total_amount", "freight_value", "total_incentive")),
            *(sum(column[name]) for name in ("total_invoice", "total_items")),
        )
        (whole,) = self._kept.next_block(1)
        return DashboardSeen(dashboard["board"], summed, dashboard["complete"], entries if whole else None)  # type: ignore[arg-type]


def record_of(witnesses: list[Any]) -> Record:
    """The record of all clients, and of an attendant that has seen marks."""
    return Record(
        [chunk for each in witnesses for chunk in each.get("chunks", ())],
        [MarkSeen(*mark) for each in witnesses for mark in each.get("marks", ())],
        [Mirrored(*mirrored) for each in witnesses for mirrored in each.get("mirror", ())],
    )


def _plain(each: Mirrored) -> list[Any]:
    return [getattr(each, name) for name in each.__struct_fields__]
