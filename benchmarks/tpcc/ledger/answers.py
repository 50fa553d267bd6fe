"""The answers about one district, in the serial order that they claim. Each must show the effects of those before it.

A reply's epoch, phase and TID are its place in that order. An order, payment or delivery without an answer has no
place: what it leaves is allowed wherever its number does not forbid it, and a balance that it may have changed is not
worked out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from benchmarks.tpcc.ledger.orders import HandedOver, Made
from benchmarks.tpcc.records import Delivered, Paid, Place, Shown
from benchmarks.tpcc.settings import FIRST_PAYMENT, Settings


class Happened(NamedTuple):
    """The events in a district since the start, and their places in the serial order if a reply told them.

    `made` and `handed_over` are orders by number, `oldest` is the first that is not delivered, `paid` are payments by
    customer and number, `untold` the customers who have paid without an answer, `deliveries` and `shown` the answers.
    """

    made: Mapping[int, Made]
    handed_over: Mapping[int, HandedOver]
    oldest: int
    paid: Mapping[tuple[int, int], Paid]
    untold: set[int]
    deliveries: Sequence[Delivered]
    shown: Sequence[Shown]


class AnswersLedger:
    """The ledger of the district `key`. `first_orders` are its customers' initial orders, by customer."""

    def __init__(
        self, key: tuple[int, int], settings: Settings, first_orders: Mapping[int, int], happened: Happened
    ) -> None:
        self._key = key
        self._settings = settings
        self._happened = happened
        self._delivered_at: dict[int, Place] = {}
        for delivered in happened.deliveries:
            if (o_id := delivered.o_ids[key[1] - 1]) is not None:
                self._delivered_at[o_id] = delivered.place
        self._orders_of: defaultdict[int, list[int]] = defaultdict(list)
        for c_id, o_id in first_orders.items():
            self._orders_of[c_id].append(o_id)
        for o_id, made in sorted(happened.made.items()):
            self._orders_of[made.c_id].append(o_id)

    def violations(self) -> Iterator[str]:
        """All that no serial order of these answers gives."""
        yield from self._numbers()
        yield from self._deliveries()
        yield from self._payments()
        for shown in self._happened.shown:
            yield from self._last_order(shown)
        yield from self._balances()

    def _numbers(self) -> Iterator[str]:
        told = [(o_id, made.place) for o_id, made in sorted(self._happened.made.items()) if made.place is not None]
        for (first, its_place), (second, place) in pairwise(told):
            if place < its_place:
                yield f"serial order: order {second} of district {self._key} was made before order {first}"

    def _deliveries(self) -> Iterator[str]:
        key, d_id = self._key, self._key[1]
        made = self._happened.made
        places = [(order.place, o_id) for o_id, order in made.items() if order.place is not None]
        places.sort()
        in_order = [o_id for _, o_id in places]
        next_one = self._happened.oldest
        # From the last to the first: what is delivered later was not delivered before.
        for delivered in reversed(self._happened.deliveries):
            o_id = delivered.o_ids[d_id - 1]
            before = bisect_left(places, (delivered.place, 0))
            last = max(self._settings.orders, in_order[before - 1] if before else 0)
            if o_id is None:
                if next_one <= last:
                    yield f"serial order: a Delivery found no order in district {key}, but {next_one} was not delivered"
                continue
            if o_id >= next_one:
                yield f"serial order: order {o_id} of district {key} was delivered before order {next_one}"
            if o_id in made and (place := made[o_id].place) is not None and place > delivered.place:
                yield f"serial order: order {o_id} of district {key} was delivered before it was made"
            next_one = min(o_id, next_one)

    def _payments(self) -> Iterator[str]:
        for (number, paid), (next_number, next_paid) in pairwise(sorted(self._happened.paid.items())):
            if number[0] == next_number[0] and next_paid.place < paid.place:
                yield (
                    f"serial order: payment {next_number[1]} of customer {(*self._key, number[0])} was made before "
                    f"payment {number[1]}"
                )

    def _last_order(self, shown: Shown) -> Iterator[str]:
        status, made = shown.status, self._happened.made
        what = f"serial order: customer {(*self._key, status.c_id)} was shown order {status.o_id}"
        places = {o_id: made[o_id].place if o_id in made else (0, 0, 0) for o_id in self._orders_of[status.c_id]}
        if status.o_id not in places:
            # What it is instead is said where the orders are looked at.
            return
        last = max((o_id for o_id, place in places.items() if place is not None and place < shown.place), default=0)
        place = places[status.o_id]
        if status.o_id < last or (place is not None and place > shown.place):
            yield f"{what} when the last one was {last}"
        if status.o_id <= self._settings.delivered:
            return
        if status.o_id in self._delivered_at:
            delivered: bool | None = self._delivered_at[status.o_id] < shown.place
        else:
            delivered = None if status.o_id in self._happened.handed_over else False
        if delivered is not None and delivered != (status.carrier_id is not None):
            yield f"{what} with carrier {status.carrier_id}, {'after' if delivered else 'before'} it was delivered"

    def _balances(self) -> Iterator[str]:
        happened = self._happened
        uncertain = {*happened.untold}
        changes: defaultdict[int, list[tuple[Place, int]]] = defaultdict(list)
        for o_id, order in happened.handed_over.items():
            if (place := self._delivered_at.get(o_id)) is not None:
                changes[order.c_id].append((place, order.amount))
            else:
                uncertain.add(order.c_id)
        answers: defaultdict[int, list[tuple[Place, int]]] = defaultdict(list)
        for (c_id, _), paid in happened.paid.items():
            changes[c_id].append((paid.place, -paid.amount))
            answers[c_id].append((paid.place, paid.balance))
        for shown in happened.shown:
            answers[shown.status.c_id].append((shown.place, shown.status.balance))
        for c_id in sorted(answers.keys() - uncertain):
            ordered = sorted(changes[c_id])
            places = [place for place, _ in ordered]
            balances = [*accumulate((amount for _, amount in ordered), initial=-FIRST_PAYMENT)]
            for place, balance in answers[c_id]:
                expected = balances[bisect_right(places, place)]
                if balance != expected:
                    yield (
                        f"serial order: customer {(*self._key, c_id)} was told of a balance of {balance} "
                        f"rather than {expected}"
                    )
