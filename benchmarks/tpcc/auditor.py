"""Reads all rows of a deployment, district by district, and passes them to the rules.

It holds no more than one district's customers at a time. Stock comes last, because any order may have used any stock.

While it reads, nothing may change. Requests without an answer can still be in the log: each is run before what
reached its slot later, or carried to an epoch that follows at once. So the audit begins when the rows that every
writing transaction changes have stayed the same over two readings, and looks at them again when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from benchmarks.tpcc import conditions, reads, tables
from benchmarks.tpcc.conditions import OrdersTally
from benchmarks.tpcc.constant import Buyer
from benchmarks.tpcc.ledger.answers import AnswersLedger, Happened
from benchmarks.tpcc.ledger.customers import CustomersLedger, Names
from benchmarks.tpcc.ledger.deliveries import DeliveriesLedger
from benchmarks.tpcc.ledger.differences import differences
from benchmarks.tpcc.ledger.levels import LevelsLedger
from benchmarks.tpcc.ledger.orders import HandedOver, OrdersLedger, Terms
from benchmarks.tpcc.ledger.remainders import Remainders
from benchmarks.tpcc.ledger.supplies import Supplies
from benchmarks.tpcc.population import goods, people, places
from benchmarks.tpcc.population.orders import ordering_customers
from benchmarks.tpcc.reads import CustomerFound, DistrictFound, OrderFound
from benchmarks.tpcc.records import Levelled, Ordered, Shown
from benchmarks.tpcc.rows_found import all_of, rows_found
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.tables import DISTRICTS, District, History, Item, Stock, Warehouse
from benchmarks.tpcc.told import Told
from benchmarks.tpcc.violations import Violations
from styx.client.base import Client

SETTLING_READS_MAX: Final = 1_000
"""Readings of all warehouses and districts until two agree; then the audit goes on, and will fail."""


class Totals(NamedTuple):
    """The rows that hold sums: every Payment and NewOrder changes one of them, and so does a Delivery that delivers."""

    warehouses: dict[int, Warehouse | None]
    districts: dict[tuple[int, int], DistrictFound]


class Auditor:
    """One audit; `counts` are of the rows that it has read."""

    def __init__(self, client: Client, settings: Settings, told: Told) -> None:
        self._client = client
        self._settings = settings
        self._told = told
        self._catalogue = [Item(0, "", 0, ""), *goods.catalogue(settings)]
        self._supplies = Supplies(settings)
        self._remainders = Remainders(settings)
        self._levels = {w_id: LevelsLedger(settings) for w_id in self._w_ids}
        self._paid: Counter[tuple[int, int]] = Counter()
        self._names = _names(settings)
        self.violations = Violations()
        self.counts: Counter[str] = Counter()

    async def read_all(self) -> None:
        """Reads every row once. Raises `Unreadable`."""
        totals = await self._settled()
        for w_id in self._w_ids:
            await self._items(w_id)
            await self._districts(w_id, totals)
        for w_id in self._w_ids:
            await self._stock(w_id)
            self._sums(w_id, totals)
        if totals != await self._totals():
            self.violations.add(["unsettled: something has written while the audit was reading; audit again"])

    @property
    def _w_ids(self) -> range:
        return range(1, self._settings.warehouses + 1)

    async def _settled(self) -> Totals:
        before = await self._totals()
        for _ in range(SETTLING_READS_MAX):
            now = await self._totals()
            if now == before:
                break
            before = now
        return before

    async def _totals(self) -> Totals:
        keys = [(w_id, d_id) for w_id in self._w_ids for d_id in range(1, DISTRICTS + 1)]
        return Totals(
            await all_of(self._client, tables.warehouse, self._w_ids, reads.audit_row, Warehouse | None),
            await all_of(self._client, tables.district, keys, reads.audit_found, DistrictFound),
        )

    async def _items(self, w_id: int) -> None:
        """One number more than there are: no order of an item that does not exist can have made it."""
        catalogue, last = goods.catalogue(self._settings), self._settings.items
        each = reads.ITEMS_READ
        rows = rows_found(self._client, tables.item, (w_id,), last + 1, reads.audit_items, each, Item | None)
        async for i_id, row in rows:
            if i_id <= last:
                self.counts["items"] += 1
                self.violations.add(differences(f"item: {(w_id, i_id)}", row, next(catalogue)))
            elif row is not None:
                self.violations.add([f"item: {(w_id, i_id)} stands, but there are {last}"])

    async def _districts(self, w_id: int, totals: Totals) -> None:
        deliveries = DeliveriesLedger(w_id, self._settings, self._told)
        handed_over: list[Mapping[int, HandedOver]] = []
        oldest: list[int] = []
        for d_id, initial in enumerate(places.districts(self._settings, w_id), 1):
            key, found = (w_id, d_id), totals.districts[w_id, d_id]
            if found.row is None:
                self.violations.add([f"district: {key} is missing"])
                handed_over.append({})
                oldest.append(0)
                continue
            orders = await self._orders(key, found.row, initial)
            customers = await self._customers(key, orders)
            handed_over.append(orders.handed_over)
            oldest.append(orders.tally.first_new or found.row.next_o_id)
            self._district(key, found, found.row, initial, orders.tally, deliveries, oldest[-1])
            self._answers(key, orders, customers, deliveries, oldest[-1])
        self.violations.add(deliveries.violations(handed_over, oldest))

    async def _orders(self, key: tuple[int, int], row: District, initial: District) -> OrdersLedger:
        w_tax = places.warehouse_row(self._settings, key[0]).tax
        customers = people.customers(self._settings, *key)
        buyers = [Buyer("", "", 0), *(Buyer(row.last_name, row.credit, row.discount) for row in customers)]
        terms = Terms(w_tax, initial.tax, buyers, self._catalogue)
        orders = OrdersLedger(key, row.next_o_id, self._settings, self._told, terms, self._supplies)
        last = max(row.next_o_id, self._settings.orders)
        function, each = reads.audit_orders, reads.ORDERS_READ
        async for o_id, found in rows_found(self._client, tables.order, key, last, function, each, OrderFound):
            self.violations.add(orders.look(o_id, found))
        self.violations.add(orders.violations())
        for ordered in self._told.about(Ordered, *key):
            self._remainders.add(ordered)
        self._levels[key[0]].district(self._told.about(Levelled, *key), orders.made, orders.items)
        self.counts["orders"] += orders.tally.orders
        self.counts["order lines"] += orders.tally.lines
        return orders

    async def _customers(self, key: tuple[int, int], orders: OrdersLedger) -> CustomersLedger:
        customers = CustomersLedger(key, self._settings, self._told, self._names, orders)
        last, each = self._settings.customers + 1, reads.CUSTOMERS_READ
        rows = rows_found(self._client, tables.customer, key, last, reads.audit_customers, each, CustomerFound)
        async for c_id, found in rows:
            payments = found.payments
            if found.row is not None and found.row.payment_cnt >= reads.PAYMENTS_READ:
                payments = await self._all_payments((*key, c_id), found.row.payment_cnt)
            self.violations.add(customers.look(c_id, found, payments))
            self.counts["customers"] += found.row is not None
            self.counts["payments"] += sum(row is not None for row in payments)
        self.violations.add(customers.violations())
        self._paid.update(customers.paid)
        return customers

    async def _all_payments(self, customer: tuple[int, int, int], count: int) -> list[History | None]:
        each = reads.MORE_PAYMENTS_READ
        function = reads.audit_payments
        rows = rows_found(self._client, tables.history, customer, count + 1, function, each, History | None)
        return [row async for _, row in rows]

    def _district(
        self,
        key: tuple[int, int],
        found: DistrictFound,
        row: District,
        initial: District,
        tally: OrdersTally,
        deliveries: DeliveriesLedger,
        oldest: int,
    ) -> None:
        """Checks the rules on all orders of a district. `_sums` checks D_YTD."""
        least, most = deliveries.bounds(key[1]) if self._told.witnessed else (self._settings.delivered, tally.orders)
        self.violations.add(conditions.condition_2(key, row.next_o_id, tally))
        self.violations.add(conditions.condition_3(key, tally))
        self.violations.add(conditions.condition_4(key, tally))
        self.violations.add(conditions.condition_11(key, tally, least, most))
        initial.ytd, initial.next_o_id = row.ytd, row.next_o_id
        self.violations.add(differences(f"district: {key}", row, initial))
        if found.undelivered != oldest:
            self.violations.add(
                [f"index of undelivered orders: district {key} has {found.undelivered} rather than {oldest}"]
            )

    def _answers(
        self,
        key: tuple[int, int],
        orders: OrdersLedger,
        customers: CustomersLedger,
        deliveries: DeliveriesLedger,
        oldest: int,
    ) -> None:
        if not self._told.witnessed:
            return
        first_orders = {c_id: o_id for o_id, c_id in enumerate(ordering_customers(self._settings, *key), 1)}
        happened = Happened(
            orders.made,
            orders.handed_over,
            oldest,
            customers.payments,
            customers.untold,
            deliveries.told,
            [*self._told.about(Shown, *key)],
        )
        self.violations.add(AnswersLedger(key, self._settings, first_orders, happened).violations())

    async def _stock(self, w_id: int) -> None:
        initial, last = goods.stocks(self._settings, w_id), self._settings.items
        each = reads.ITEMS_READ
        rows = rows_found(self._client, tables.stock, (w_id,), last + 1, reads.audit_stocks, each, Stock | None)
        async for i_id, row in rows:
            if i_id <= last:
                self.counts["rows of stock"] += 1
                first, taken = next(initial), self._supplies.taken(w_id, i_id)
                self.violations.add(self._remainders.violations(w_id, i_id, first.quantity, taken))
                self._levels[w_id].stock(i_id, first.quantity, self._remainders.left(w_id, i_id, first.quantity, taken))
                self.violations.add(self._supplies.violations(w_id, i_id, first, row))
            elif row is not None:
                self.violations.add([f"stock: {(w_id, i_id)} stands, but there are {last}"])
        self.violations.add(self._levels[w_id].violations())

    def _sums(self, w_id: int, totals: Totals) -> None:
        row = totals.warehouses[w_id]
        districts = {key: found.row for key, found in totals.districts.items() if key[0] == w_id}
        if row is None:
            self.violations.add([f"warehouse: {w_id} is missing"])
            return
        initial = places.warehouse_row(self._settings, w_id)
        initial.ytd = row.ytd
        self.violations.add(differences(f"warehouse: {w_id}", row, initial))
        self.violations.add(
            conditions.condition_1(w_id, row.ytd, [found.ytd for found in districts.values() if found is not None])
        )
        self.violations.add(conditions.condition_8(w_id, row.ytd, sum(self._paid[key] for key in districts)))
        for key, found in districts.items():
            if found is not None:
                self.violations.add(conditions.condition_9(key, found.ytd, self._paid[key]))


def _names(settings: Settings) -> Names:
    """The names of all warehouses and their districts."""
    names: Names = {}
    for w_id in range(1, settings.warehouses + 1):
        warehouse = places.warehouse_row(settings, w_id).name
        for d_id, district in enumerate(places.districts(settings, w_id), 1):
            names[w_id, d_id] = warehouse, district.name
    return names
