"""The deliveries of one warehouse. Each order delivered since the start belongs to a Delivery in a reply, or to one
without an answer.

A Delivery takes an order of every district that has one, and gives all of them the same carrier and time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.tpcc.ledger.orders import HandedOver
from benchmarks.tpcc.records import AskedDelivery, Delivered
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.told import Told


class DeliveriesLedger:
    """The ledger of the warehouse `w_id`. `told` are the deliveries in replies, in the serial order that they claim."""

    def __init__(self, w_id: int, settings: Settings, told: Told) -> None:
        self._w_id = w_id
        self._settings = settings
        self._witnessed = told.witnessed
        self.told = sorted(told.about(Delivered, w_id), key=lambda delivered: delivered.place)
        self._asked = Counter(asked.carrier_id for asked in told.about(AskedDelivery, w_id))
        self._delivered_by: dict[tuple[int, int], Delivered] = {}
        self._twice: list[tuple[int, int]] = []
        for delivered in self.told:
            for d_id, o_id in enumerate(delivered.o_ids, 1):
                if o_id is not None and self._delivered_by.setdefault((d_id, o_id), delivered) is not delivered:
                    self._twice.append((d_id, o_id))

    def told_of(self, d_id: int) -> int:
        """How many orders of the district clients were told that they were delivered."""
        return sum(delivered.o_ids[d_id - 1] is not None for delivered in self.told)

    def bounds(self, d_id: int) -> tuple[int, int]:
        """How many orders of the district can be delivered, those at the start included, for condition 11."""
        least = self._settings.delivered + self.told_of(d_id)
        return least, least + self._asked.total()

    def violations(self, handed_over: Sequence[Mapping[int, HandedOver]], oldest: Sequence[int]) -> Iterator[str]:
        """The violations of the orders delivered since the start, by district. `oldest` are the next orders to
        deliver.
        """
        if not self._witnessed:
            return
        for d_id, o_id in self._twice:
            yield f"delivery: order {(self._w_id, d_id, o_id)} was delivered twice"
        for delivered in self.told:
            yield from self._as_told(delivered, handed_over)
        yield from self._without_answer(handed_over, oldest)

    def _as_told(self, delivered: Delivered, handed_over: Sequence[Mapping[int, HandedOver]]) -> Iterator[str]:
        times = set()
        for d_id, o_id in enumerate(delivered.o_ids, 1):
            if o_id is None:
                continue
            key = self._w_id, d_id, o_id
            found = handed_over[d_id - 1].get(o_id)
            if found is None:
                yield f"delivery: order {key} is not delivered, but carrier {delivered.carrier_id} was told that it is"
                continue
            times.add(found.delivery_d)
            if found.carrier_id != delivered.carrier_id:
                yield f"delivery: order {key} has carrier {found.carrier_id} rather than {delivered.carrier_id}"
        if len(times) > 1:
            several = ", ".join(map(str, times))
            yield f"delivery: {delivered.o_ids} of warehouse {self._w_id} were delivered at once, at {several}"

    def _without_answer(self, handed_over: Sequence[Mapping[int, HandedOver]], oldest: Sequence[int]) -> Iterator[str]:
        """Groups the orders that no reply named into deliveries, by carrier and time."""
        together: defaultdict[tuple[int, int | None], Counter[int]] = defaultdict(Counter)
        for d_id, orders in enumerate(handed_over, 1):
            for o_id, found in orders.items():
                if (d_id, o_id) not in self._delivered_by:
                    together[found.carrier_id, found.delivery_d][d_id] += 1
        happened: Counter[int] = Counter()
        for (carrier_id, delivery_d), districts in together.items():
            # As many at once as delivered to one district: each Delivery takes one order of it.
            count = max(districts.values())
            happened[carrier_id] += count
            if not self._asked[carrier_id]:
                continue
            what = f"{count} without an answer, of warehouse {self._w_id} by carrier {carrier_id} at {delivery_d},"
            for d_id, o_id in enumerate(oldest, 1):
                if districts[d_id] < count and o_id <= self._settings.orders:
                    yield f"delivery: {what} took {districts[d_id]} of district {d_id}, which still has order {o_id}"
        for carrier_id, count in happened.items():
            if count > (asked := self._asked[carrier_id]):
                yield (
                    f"delivery: {count} of warehouse {self._w_id} by carrier {carrier_id} have happened that nobody "
                    f"was told of, but {asked} have no answer"
                )
