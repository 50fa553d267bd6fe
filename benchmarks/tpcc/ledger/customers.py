"""The customers of one district and their payments.

Each row of HISTORY is initial, or belongs to a payment in a reply, or to a payment without an answer. A customer's row
is the result of its payments and deliveries.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.tpcc import conditions
from benchmarks.tpcc.arithmetic import BAD_CREDIT, data_after, middle
from benchmarks.tpcc.constant import Payer, of_payment
from benchmarks.tpcc.ledger.differences import differences
from benchmarks.tpcc.ledger.orders import OrdersLedger
from benchmarks.tpcc.population import people
from benchmarks.tpcc.reads import CustomerFound
from benchmarks.tpcc.records import AskedPayment, Paid, Shown
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.tables import Customer, History
from benchmarks.tpcc.told import Told

Names = dict[tuple[int, int], tuple[str, str]]
"""The names of warehouse and district, by district: the H_DATA of its payments."""


class CustomersLedger:
    """The ledger of the district `key`. `names` are of all districts. `look` takes the numbers from 1 on.

    `paid` are the cents that HISTORY has, by the district where they were paid. `payments` are those of the clients,
    by customer and number, and `untold` the customers who have paid without an answer.
    """

    def __init__(
        self, key: tuple[int, int], settings: Settings, told: Told, names: Names, orders: OrdersLedger
    ) -> None:
        self._key = key
        self._settings = settings
        self._names = names
        self._orders = orders
        self._witnessed = told.witnessed
        self._initial = zip(people.customers(settings, *key), people.histories(settings, *key), strict=True)
        self._by_name = people.customers_by_name(settings, *key)
        self._middle = {middle(numbers): last for last, numbers in self._by_name.items()}
        self.payments: dict[tuple[int, int], Paid] = {}
        self._payments_of: defaultdict[int, list[Paid]] = defaultdict(list)
        self._told: set[tuple[int, int]] = set()
        self._faults: list[str] = []
        for paid in told.about(Paid, *key):
            self._take(paid)
        self._shown: defaultdict[int, set[tuple[str, str, str]]] = defaultdict(set)
        for shown in told.about(Shown, *key):
            status = shown.status
            self._named("order status", status.c_id, shown.by_name)
            self._shown[status.c_id].add((status.first, status.middle, status.last))
        self._asked = Counter(
            (asked.w_id, asked.d_id, self._number_of(asked.who), asked.amount)
            for asked in told.about(AskedPayment, *key)
        )
        self._deliveries = Counter(order.c_id for order in orders.handed_over.values())
        self._delivered_since: Counter[int] = Counter()
        for order in orders.handed_over.values():
            self._delivered_since[order.c_id] += order.amount
        self.paid: Counter[tuple[int, int]] = Counter()
        self.untold: set[int] = set()

    def look(self, c_id: int, found: CustomerFound, payments: Sequence[History | None]) -> Iterator[str]:
        """The violations of the next customer. Its `payments` are numbered from 1, and the last must not exist."""
        key = (*self._key, c_id)
        if c_id > self._settings.customers:
            if found.row is not None:
                yield f"customer: {key} stands, but there are {self._settings.customers} in each district"
            return
        expected, first_payment = next(self._initial)
        if found.row is None:
            yield f"customer: {key} is missing"
            return
        payer = Payer(expected.first_name, expected.middle, expected.last_name, expected.credit, expected.discount)
        for names in self._shown[c_id] - {payer[:3]}:
            yield f"order status: customer {key} was shown as {names} rather than {payer[:3]}"
        yield from self._of_payments(c_id, found.row.payment_cnt, payments, first_payment)
        yield from self._of_answers(payer, c_id)
        paid = sum(row.amount for row in payments if row is not None)
        delivered = self._orders.delivered[c_id]
        yield from conditions.condition_10(key, found.row, delivered, paid)
        yield from conditions.condition_12(key, found.row, delivered)
        yield from differences(f"customer: {key}", found.row, self._expected(c_id, expected, payments[1:]))
        if found.last_order != self._orders.last_order.get(c_id):
            last = self._orders.last_order.get(c_id)
            yield f"index of last orders: customer {key} has {found.last_order} rather than {last}"
        if found.namesakes != (namesakes := self._by_name[expected.last_name]):
            yield f"index of names: {expected.last_name} of {key} has {found.namesakes} rather than {namesakes}"

    def violations(self) -> Iterator[str]:
        """The violations found after the last customer."""
        yield from self._faults
        for c_id, number in sorted(self._told):
            yield f"payment: {(*self._key, c_id, number)} was told of, but does not stand in HISTORY"

    def _take(self, paid: Paid) -> None:
        number = paid.c_id, paid.payment_cnt
        if number in self.payments:
            self._faults.append(f"payment: {(*self._key, *number)} was told of twice")
        self.payments[number] = paid
        self._payments_of[paid.c_id].append(paid)
        self._told.add(number)
        self._named("payment", paid.c_id, paid.by_name)

    def _named(self, what: str, c_id: int, by_name: bool) -> None:
        if by_name and c_id not in self._middle:
            self._faults.append(
                f"{what}: customer {(*self._key, c_id)} was found by name, but another one is in the middle"
            )

    def _number_of(self, who: int | str) -> int:
        return who if isinstance(who, int) else middle(self._by_name[who])

    def _of_payments(
        self, c_id: int, payment_cnt: int, payments: Sequence[History | None], first: History
    ) -> Iterator[str]:
        key = (*self._key, c_id)
        for number, row in enumerate(payments, 1):
            if number > payment_cnt:
                if row is not None:
                    self._told.discard((c_id, number))
                    yield f"payment: {(*key, number)} stands in HISTORY, but C_PAYMENT_CNT is {payment_cnt}"
            elif row is None:
                yield f"payment: {(*key, number)} is missing in HISTORY, but C_PAYMENT_CNT is {payment_cnt}"
            elif number == 1:
                yield from differences(f"payment: {(*key, number)}", row, first)
            else:
                yield from self._of_payment(c_id, number, row)
            if row is not None:
                self.paid[row.w_id, row.d_id] += row.amount

    def _of_answers(self, payer: Payer, c_id: int) -> Iterator[str]:
        for told in self._payments_of[c_id]:
            names = self._names[told.w_id, told.d_id]
            if told.names != of_payment(*names, payer):
                key = (*self._key, c_id, told.payment_cnt)
                yield f"payment: {key} is of {payer} at {names}, but others were told"

    def _of_payment(self, c_id: int, number: int, row: History) -> Iterator[str]:
        key = (*self._key, c_id, number)
        expected = History(
            row.w_id, row.d_id, row.date, row.amount, "    ".join(self._names.get((row.w_id, row.d_id), ()))
        )
        if (c_id, number) in self._told:
            self._told.discard((c_id, number))
            told = self.payments[c_id, number]
            expected.w_id, expected.d_id, expected.date, expected.amount = told.w_id, told.d_id, told.date, told.amount
        elif self._witnessed:
            self.untold.add(c_id)
            asked = row.w_id, row.d_id, c_id, row.amount
            if not self._asked[asked]:
                yield f"payment: {key} of {row.amount} at {row.w_id, row.d_id} stands, and nobody has asked for it"
            self._asked[asked] -= 1
        yield from differences(f"payment: {key}", row, expected)

    def _expected(self, c_id: int, row: Customer, payments: Sequence[History | None]) -> Customer:
        """The row expected now; `row` is the initial one."""
        paid = [payment for payment in payments if payment is not None]
        amount = sum(payment.amount for payment in paid)
        row.balance += self._delivered_since[c_id] - amount
        row.ytd_payment += amount
        row.payment_cnt += len(paid)
        row.delivery_cnt += self._deliveries[c_id]
        if row.credit == BAD_CREDIT:
            for payment in paid:
                row.data = data_after(row.data, (*self._key, c_id), payment.w_id, payment.d_id, payment.amount)
        return row
